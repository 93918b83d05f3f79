package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// A program that knows the sentinels needs no address that follows the master: its pool
// asks them. When the master is killed, the pool finds the new one by itself. When the old
// one comes back, empty, and is a master until Sentinel demotes it, the pool does not go
// there.
func TestSentinelPool(t *testing.T) {
	t.Parallel()
	master := redistest.Real(t, "--repl-diskless-sync", "no")
	replica := rig.Replica(t, master.Addr)
	sentinels := rig.NewSentinels(t, master, 1)
	st := store.New(sentinelPool(t, sentinels.Addrs), store.Options{Lease: lease})
	r := noted(t, "master killed, the pool asks Sentinel", "the session is there, soon after the failover")

	count := &counter{t: t, st: st, id: "one"}
	if err := st.Create(t.Context(), count.id, []byte{0}, store.Terms{}); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		count.mustUp()
	}
	rig.AwaitAcks(t, master, 1)
	sentinels.Watch(t)
	master.Stop(t)
	killed := time.Now()
	refused := 0
	eventually(t, 30*time.Second, "the session is found again", func() bool {
		err := count.up()
		if err != nil {
			refused++
		}
		return err == nil
	})
	r.recovered = time.Since(killed)
	sentinels.AwaitMaster(t, master.Addr)
	if refused == 0 || sentinels.Master(t) != replica.Addr {
		t.Errorf("%d requests were refused, and the master is %s", refused, sentinels.Master(t))
	}

	sentinels.Hurry(t, replica.Addr)
	master.Restart(t)
	alone := 0
	eventually(t, 30*time.Second, "the old master follows the new one", func() bool {
		count.mustUp()
		role := rig.Role(master)
		if role == "master" {
			alone++
		}
		return role == "slave"
	})
	if alone == 0 {
		t.Error("the old master was never one again")
	}
	r.seen = fmt.Sprintf("%d requests refused; %d answered while the old master was back as a master", refused, alone)
}

// sentinelPool is a pool as in the example of package store.
func sentinelPool(t *testing.T, sentinels []string) *redis.Pool {
	options := []redis.DialOption{
		redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(timeout), redis.DialWriteTimeout(timeout),
	}
	pool := &redis.Pool{MaxIdle: 64, DialContext: func(ctx context.Context) (redis.Conn, error) {
		at, err := rig.MasterOf(ctx, sentinels)
		if err != nil {
			return nil, err
		}
		conn, err := redis.DialContext(ctx, "tcp", at, options...)
		if err != nil {
			return nil, err
		}
		role, err := redis.Values(conn.Do("ROLE"))
		if err == nil && string(role[0].([]byte)) != "master" {
			err = errors.New("not the master any more")
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// A counter counts in a session of its own, and checks that it finds what it has stored.
type counter struct {
	t  *testing.T
	st *store.Store
	id string
	n  byte
}

// up counts one more. After an error, that may or may not have been done.
func (c *counter) up() error {
	h, err := c.st.Take(c.t.Context(), c.id, store.Terms{LockWait: lockWait})
	if err != nil {
		if !errors.Is(err, store.ErrUnavailable) {
			c.t.Errorf("taking the session: %v", err)
		}
		return err
	}
	found := h.Record.Data[0]
	if found != c.n {
		c.t.Errorf("found %d, want %d", found, c.n)
	}
	err = h.Save(c.t.Context(), []byte{found + 1})
	if err == nil {
		c.n = found + 1
	}
	return err
}

func (c *counter) mustUp() {
	if err := c.up(); err != nil {
		c.t.Error(err)
	}
}
