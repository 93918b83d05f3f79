package locker

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/gomodule/redigo/redis"
)

// patient are options for tests on servers that are not about time: nothing runs
// out, even on a machine that is busy with something else.
var patient = Options{Lease: time.Minute, Wait: time.Minute, Timeout: 10 * s}

// onServers runs f against an embedded Redis and against a real one.
func onServers(t *testing.T, f func(t *testing.T, server *redistest.Server)) {
	t.Parallel()
	redistest.Each(t, f)
}

// newProcess returns what one process has: a pool and a Spin. Two of them know
// nothing of each other.
func newProcess(t *testing.T, server *redistest.Server, o Options) *Spin {
	return NewSpin(server.Pool(t, 8), o)
}

// newProxied returns a process whose way to Redis leads through a proxy. Redis
// knows the scripts already.
func newProxied(t *testing.T, server *redistest.Server, o Options) (*Spin, *redistest.Proxy) {
	t.Helper()
	teach(t, server)
	proxy := redistest.NewProxy(t, server)
	return NewSpin(proxy.Pool(t, 8), o), proxy
}

// teach makes Redis know the scripts, which it does after their first use.
func teach(t *testing.T, server *redistest.Server) {
	t.Helper()
	l := mustLock(t, NewSpin(server.Pool(t, 1), patient), "any")
	mustExtend(t, l)
	mustUnlock(t, l)
}

func mustLock(t *testing.T, spin *Spin, key string) *Lease {
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

// inUse is how many connections of a pool are lent out.
func inUse(pool *redis.Pool) int {
	stats := pool.Stats()
	return stats.ActiveCount - stats.IdleCount
}
