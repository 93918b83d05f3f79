package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A program with a pool of its own, which knows nothing about failovers, recovers soon,
// too: its connections stay open, to what is a replica now, and each is given up when that
// refuses a command.
func TestOwnPoolAfterFailover(t *testing.T) {
	t.Parallel()
	r := noted(t, "FAILOVER, with store.New and a plain pool", "P8: back by itself, the session is there")
	master := redistest.Real(t, "--repl-diskless-sync", "no")
	replica := rig.Replica(t, master.Addr)
	address := rig.NewAddress(t, master.Addr)
	pool := &redis.Pool{MaxIdle: 8, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", address.Addr, redis.DialReadTimeout(timeout))
	}}
	t.Cleanup(func() { _ = pool.Close() })
	st := store.New(pool, store.Options{})
	if err := st.Create(t.Context(), "id", []byte("data"), store.Terms{}); err != nil {
		t.Fatal(err)
	}
	master.Do(t, "FAILOVER")
	eventually(t, 10*time.Second, "the roles are swapped", func() bool {
		return rig.Role(master) == "slave" && rig.Role(replica) == "master"
	})
	address.Lead(replica.Addr)
	swapped, refused := time.Now(), 0
	eventually(t, 5*time.Second, "the session is found", func() bool {
		found, err := st.Load(t.Context(), "id", store.Terms{})
		if err != nil {
			refused++
		}
		return err == nil && string(found.Data) == "data"
	})
	r.recovered = time.Since(swapped)
	r.seen = fmt.Sprintf("%d requests refused", refused)
	if refused == 0 || refused > 8 {
		t.Errorf("%d requests were refused, want one for each old connection at most", refused)
	}
}
