package rueidisstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/testdata/child"
	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

// With Sentinel the store follows the master by itself. One sentinel that is dead does not matter.
// While a replica takes over, a session is not to be had, but it is never said to be absent.
func TestSentinel(t *testing.T) {
	t.Parallel()
	master := redistest.Real(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Real(t, "--replicaof", host+" "+port)
	sentinel := startSentinel(t, host, port)
	eventually(t, "the sentinel knows the replica", func() bool {
		known, err := redis.StringMap(ask(sentinel, "SENTINEL", "MASTER", "sessions"))
		return err == nil && known["num-slaves"] == "1"
	})
	o := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1", sentinel}}
	o.Sentinel.MasterSet = "sessions"
	st := openStore(t, o, store.Options{Timeout: 2 * time.Second})
	eventually(t, "the master is found", func() bool { return st.Ping(t.Context()) == nil })
	create(t, st, "id", "old")
	eventually(t, "the replica has it", func() bool { return replica.Exists(t, "latchkey:{id}") })

	if _, err := ask(sentinel, "SENTINEL", "FAILOVER", "sessions"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica takes over, and the session is there", func() bool {
		if err := save(t, st, "id", "new"); errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		data, _ := replica.Get(t, "latchkey:{id}")
		role, _ := redis.Values(replica.Do(t, "ROLE"), nil)
		return len(role) > 0 && string(role[0].([]byte)) == "master" && len(data) > 0 && save(t, st, "id", "new") == nil
	})
	wantData(t, st, "id", "new")
}

func ask(at, command string, args ...any) (any, error) {
	conn, err := redis.Dial("tcp", at, redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(time.Second))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Do(command, args...)
}

// startSentinel returns the host:port of a sentinel that decides alone.
func startSentinel(t testing.TB, host, port string) string {
	t.Helper()
	for range 5 { // a port may be in use: try others
		mine := fmt.Sprint(20000 + rand.IntN(12000)) // below those that the kernel assigns
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("bind 127.0.0.1\nport %s\ndir %q\nsentinel monitor sessions %s %s 1\n"+
			"sentinel failover-timeout sessions 1500\n", mine, filepath.Dir(file), host, port)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := child.Start(exec.Command(redistest.Binary(t), file, "--sentinel"))
		if err != nil {
			t.Fatal(err)
		}
		p.EndWith(t)
		at := "127.0.0.1:" + mine
		for begun := time.Now(); time.Since(begun) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
			if master, err := ask(at, "SENTINEL", "MASTER", "sessions"); err == nil && master != nil {
				return at
			}
			select {
			case <-p.Done():
				begun = time.Time{}
			default:
			}
		}
	}
	t.Fatal("no sentinel could be started")
	return ""
}
