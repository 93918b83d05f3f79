package locker_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/locksite"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/lockertest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// All locks of the package keep the promises of a Locker, on an imitation of Redis
// and on real ones.
func TestFamily(t *testing.T) {
	t.Parallel()
	lent := &locksite.Servers{TB: t}
	for name, m := range family {
		t.Run(name, func(t *testing.T) {
			for place, start := range map[string]func(*testing.T) *redistest.Server{
				"embedded": func(t *testing.T) *redistest.Server { return redistest.Embedded(t) },
				"real":     lent.Get,
			} {
				t.Run(place, func(t *testing.T) {
					t.Parallel()
					lockertest.Run(t, lockertest.Kind{
						Site:        func(t *testing.T) lockertest.Site { return newSite(t, m, start) },
						Nodes:       m.nodes,
						SeesRelease: !m.sleeps,
						FIFO:        true,
						Repeats:     true,
					})
				})
			}
		})
	}
}

// A member of the family: on how many nodes, and how it is made.
type member struct {
	nodes  int
	sleeps bool // until the holder's lease ends
	lock   func(pools []*redis.Pool, o locker.Options) locker.Locker
}

var family = map[string]member{
	"Spin":     {nodes: 1, lock: spin},
	"Lease":    {nodes: 1, lock: lease},
	"LeaseEnd": {nodes: 1, lock: leaseEnd, sleeps: true},

	"Timestamp":           {nodes: 1, lock: timestamp},
	"TimestampLocalClock": {nodes: 1, lock: localClock},

	"Redlock3": {nodes: 3, lock: redlock},
	"Redlock5": {nodes: 5, lock: redlock},
}

func spin(pools []*redis.Pool, o locker.Options) locker.Locker {
	return locker.NewSpin(pools[0], o)
}

// lease has no queue of processes, and no notifications: it polls at one pace.
func lease(pools []*redis.Pool, o locker.Options) locker.Locker {
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

func newSite(t *testing.T, m member, start func(*testing.T) *redistest.Server) lockertest.Site {
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
}
