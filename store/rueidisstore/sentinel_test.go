package rueidisstore

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
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
	sentinel := redistest.Sentinel(t, master, 1)
	eventually(t, "the sentinel knows the replica", func() bool {
		known, err := redis.StringMap(redistest.AskSentinel(sentinel, "SENTINEL", "MASTER", redistest.MasterName))
		return err == nil && known["num-slaves"] == "1"
	})
	o := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1", sentinel}}
	o.Sentinel.MasterSet = redistest.MasterName
	st := openStore(t, o, store.Options{Timeout: 2 * time.Second})
	eventually(t, "the master is found", func() bool { return st.Ping(t.Context()) == nil })
	create(t, st, "id", "old")
	eventually(t, "the replica has it", func() bool { return replica.Exists(t, "latchkey:{id}") })

	if _, err := redistest.AskSentinel(sentinel, "SENTINEL", "FAILOVER", redistest.MasterName); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replica takes over, and the session is there", func() bool {
		err := save(t, st, "id", "new")
		if errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		if err != nil || !replica.IsMaster(t) {
			return false
		}
		// What the old master was given before it knew that it was one no longer is lost.
		r, err := st.Load(t.Context(), "id", store.Terms{})
		return err == nil && string(r.Data) == "new"
	})
	if data, _ := replica.Get(t, "latchkey:{id}"); data == "" {
		t.Error("the session is not at the new master")
	}
}
