package goredisstore

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/testdata/child"
	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/redis/go-redis/v9"
)

// A FailoverClient goes to the master that Sentinel names. After a failover it is another one, and
// the sessions are there.
func TestSentinel(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Real(t, "--repl-diskless-sync", "no"), redistest.Real(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica.Do(t, "REPLICAOF", host, port)
	sentinel := startSentinel(t, host, port)

	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "sessions", SentinelAddrs: []string{sentinel.Options().Addr}, ContextTimeoutEnabled: true,
	})
	defer c.Close()
	st, err := New(c, store.Options{Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.Create(t.Context(), "theID", []byte("1"), store.Terms{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica has it", func() error { return missing(!replica.Exists(t, "latchkey:{theID}")) })
	eventually(t, "a failover begins", func() error {
		return sentinel.Do(t.Context(), "SENTINEL", "FAILOVER", "sessions").Err() // it may not know the replica yet
	})
	eventually(t, "the replica is the master", func() error { return missing(!replica.IsMaster(t)) })
	eventually(t, "the session is served", func() error {
		h, err := st.Take(t.Context(), "theID", store.Terms{})
		if err != nil {
			return err
		}
		return h.Save(t.Context(), []byte("2"))
	})
	if r, err := st.Load(t.Context(), "theID", store.Terms{}); string(r.Data) != "2" || err != nil {
		t.Errorf("loaded %q, %v", r.Data, err)
	}
	if got, _ := replica.Get(t, "latchkey:{theID}"); got == "" {
		t.Error("it is not at the new master")
	}
}

// startSentinel starts a sentinel of a master, and returns a client of it.
func startSentinel(t *testing.T, host, port string) *redis.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, own, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nsentinel monitor sessions %s %s 1\nsentinel down-after-milliseconds sessions 60000\n", own, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := child.Start(exec.Command(redistest.Binary(t), config, "--sentinel"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + own, Protocol: 2})
	t.Cleanup(func() { c.Close() })
	eventually(t, "the sentinel answers", func() error {
		return c.Do(t.Context(), "SENTINEL", "DEBUG", "INFO-PERIOD", 500).Err()
	})
	return c
}

func missing(yes bool) error {
	if yes {
		return errors.New("not yet")
	}
	return nil
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	err := try()
	for end := time.Now().Add(30 * time.Second); err != nil; err = try() {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
