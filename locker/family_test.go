package locker_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/locksite"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/lockertest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// All locks of the package keep the promises of a Locker: in fake time on a Redis in memory, and also on real
// ones if they run different scripts.
func TestFamily(t *testing.T) {
	t.Parallel()
	lent := &locksite.Servers{TB: t}
	inMemory := func(t *testing.T) *redistest.Server { return redistest.Memory(t) }
	for name, m := range family {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lockertest.Run(t, m.kind(inMemory, true))
			if m.real {
				t.Run("real", func(t *testing.T) {
					t.Parallel()
					lockertest.Run(t, m.kind(lent.Get, false))
				})
			}
		})
	}
}

// A member is a lock of the family: how many nodes it needs, and how it is made.
type member struct {
	nodes  int
	sleeps bool // until the holder's lease ends
	real   bool // to be run on real servers, too
	lock   func(pools []*redis.Pool, o locker.Options) locker.Locker
}

var family = map[string]member{
	"Spin":     {nodes: 1, real: true, lock: spin},
	"Polled":   {nodes: 1, lock: polling},
	"LeaseEnd": {nodes: 1, sleeps: true, lock: leaseEnd},

	"Timestamp":           {nodes: 1, real: true, lock: timestamp},
	"TimestampLocalClock": {nodes: 1, lock: localClock},

	"Redlock3": {nodes: 3, real: true, lock: redlock},
	"Redlock5": {nodes: 5, lock: redlock},
}

func (m member) kind(start func(*testing.T) *redistest.Server, fake bool) lockertest.Kind {
	return lockertest.Kind{
		Site: func(t *testing.T) lockertest.Site {
			if fake {
				redistest.Elapse(locker.Years)
			}
			nodes := make([]*redistest.Server, m.nodes)
			for i := range nodes {
				nodes[i] = start(t)
			}
			return locksite.New(t, nodes, func(ways []*redistest.Proxy, o locker.Options) locker.Locker {
				pools := make([]*redis.Pool, len(ways))
				for i, way := range ways {
					pools[i] = way.Pool(t, 8)
				}
				return m.lock(pools, o)
			})
		},
		Nodes:       m.nodes,
		SeesRelease: !m.sleeps,
		FIFO:        true,
		Repeats:     true,
		FakeTime:    fake,
	}
}

func spin(pools []*redis.Pool, o locker.Options) locker.Locker {
	return locker.NewSpin(pools[0], o)
}

// polling is a lock without a queue of processes and without notifications: it polls at one pace.
func polling(pools []*redis.Pool, o locker.Options) locker.Locker {
	o.Backoff = locker.Backoff{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond}
	client := transport.NewRedigo(pools[0], cmp.Or(o.Timeout, locker.DefaultTimeout))
	return locker.New(polled{locker.SpinAlgorithm(client)}, o)
}

// polled hides the queue of an algorithm.
type polled struct{ locker.Algorithm }

func leaseEnd(pools []*redis.Pool, o locker.Options) locker.Locker {
	o.Policy = locker.LeaseEnd
	return locker.NewSpin(pools[0], o)
}

func timestamp(pools []*redis.Pool, o locker.Options) locker.Locker {
	return locker.NewTimestamp(pools[0], o)
}

func localClock(pools []*redis.Pool, o locker.Options) locker.Locker {
	o.LocalClock = true
	return locker.NewTimestamp(pools[0], o)
}

func redlock(pools []*redis.Pool, o locker.Options) locker.Locker {
	return locker.NewRedlock(pools, o)
}

// A lock is small, and does not stay. So it can be acquired even on a Redis that is full.
func TestLocksOnAFullRedis(t *testing.T) {
	t.Parallel()
	for name, m := range family {
		take := func(t *testing.T, full func(*redistest.Server), server *redistest.Server) {
			pools := make([]*redis.Pool, m.nodes)
			for i := range pools {
				if i > 0 {
					server = server.Another(t)
				}
				full(server)
				pools[i] = server.Pool(t, 4)
			}
			locks := m.lock(pools, locker.Options{})
			for range 2 {
				lease, err := locks.Lock(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				if err := lease.Extend(t.Context(), 10*time.Second); err != nil {
					t.Error(err)
				}
				if err := lease.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.InFakeTime(t, func(t *testing.T, server *redistest.Server) {
				t.Cleanup(func() { redistest.Elapse(time.Hour) }) // everything under way ends
				redistest.Elapse(locker.Years)
				take(t, func(server *redistest.Server) {
					server.Fake(func(f *fakeredis.Server) { f.Full = true })
				}, server)
			})
		})
		if m.real && m.nodes == 1 {
			t.Run(name+" real", func(t *testing.T) {
				t.Parallel()
				take(t, func(server *redistest.Server) { server.Fill(t) }, redistest.Real(t))
			})
		}
	}
}
