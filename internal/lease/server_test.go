package lease

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// patient are options for tests on servers that are not about time: nothing runs
// out, even on a machine that is busy with something else.
var patient = Options{Lease: time.Minute, Wait: time.Minute, Timeout: 10 * s}

// onServers runs f against an embedded Redis and against a real one.
func onServers(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Parallel()
	redistest.EachInRealTime(t, f)
}

// A peer is what one process has of the spin lock. Two of them know nothing of each
// other.
type peer struct {
	group     Group
	algorithm Algorithm
	options   Options
}

func newSpin(pool *redis.Pool, o Options) *peer {
	timeout := cmp.Or(o.Timeout, DefaultTimeout)
	client := transport.NewRedigo(pool, timeout)
	return &peer{group: Group{Notifiers: NewNotifiers(client)}, algorithm: Spin{Runner: scripting.NewRunner(client, timeout)}, options: o}
}

func newProcess(t *testing.T, server *redistest.Server, o Options) *peer {
	return newSpin(server.Pool(t, 8), o)
}

func (p *peer) Lock(ctx context.Context, key string) (*Lease, error) {
	return p.group.Lock(ctx, key, p.algorithm, p.options)
}

// newProxied returns a process whose way to Redis leads through a proxy. Redis
// knows the scripts already.
func newProxied(t *testing.T, server *redistest.Server, o Options) (*peer, *redistest.Proxy) {
	t.Helper()
	teach(t, server)
	proxy := redistest.NewProxy(t, server)
	return newSpin(proxy.Pool(t, 8), o), proxy
}

// teach makes Redis know the scripts, which it does after their first use.
func teach(t *testing.T, server *redistest.Server) {
	t.Helper()
	l := mustLock(t, newSpin(server.Pool(t, 1), patient), "any")
	mustExtend(t, l)
	mustUnlock(t, l)
}

func mustLock(t *testing.T, spin *peer, key string) *Lease {
	t.Helper()
	l, err := spin.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustExtend(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
}

func mustUnlock(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// eventually waits for something that takes a moment. It has patience with busy
// machines: what a lease's end brings about by itself takes much longer still.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * s); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// poolAs returns a pool of a Redis user.
func poolAs(t *testing.T, server *redistest.Server, user string) *redis.Pool {
	pool := &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", server.Addr, redis.DialUsername(user), redis.DialPassword("pw"))
	}}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// overPool returns a runner on the Redis of a pool.
func overPool(pool *redis.Pool, timeout time.Duration) *scripting.Runner {
	return scripting.NewRunner(transport.NewRedigo(pool, timeout), timeout)
}
