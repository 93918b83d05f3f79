package locker_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/lockertest"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/a2139e8d/latchkey/testdata/redistest"
	"github.com/gomodule/redigo/redis"
)

// All locks of the package keep the promises of a Locker, on an imitation of Redis
// and on real ones.
func TestFamily(t *testing.T) {
	t.Parallel()
	lent := &servers{tb: t}
	for name, m := range family {
		t.Run(name, func(t *testing.T) {
			for place, start := range map[string]func(*testing.T) *redistest.Server{
				"embedded": func(t *testing.T) *redistest.Server { return redistest.Embedded(t) },
				"real":     lent.get,
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
	return lockertest.Site{
		New: func(o locker.Options) *lockertest.Process {
			ways := make([]*way, len(nodes))
			pools := make([]*redis.Pool, len(nodes))
			for i, node := range nodes {
				ways[i] = newWay(t, node)
				pools[i] = ways[i].proxy.Pool(t, 8)
			}
			return newProcess(m.lock(pools, o), ways)
		},
		ScriptFlush: func() {
			for _, node := range nodes {
				node.Do(t, "SCRIPT", "FLUSH")
			}
		},
		Forget: func(node int, key string) {
			nodes[node].Do(t, "DEL", key, "{"+key+"}.owner") // which Timestamp has beside it
		},
		Keys: func(node int) []string { return nodes[node].Keys(t) },
	}
}

func newProcess(l locker.Locker, ways []*way) *lockertest.Process {
	return &lockertest.Process{
		Locker: l,
		Break:  func(node int, faults ...lockertest.Fault) { ways[node].breakNext(faults) },
		Pause: func() (resume, deliver func()) {
			all := func(f func(w *way)) func() {
				return func() {
					for _, w := range ways {
						f(w)
					}
				}
			}
			all((*way).pause)()
			return all((*way).resume), all(func(w *way) { w.proxy.Release() })
		},
		Exchanges: func() int {
			n := 0
			for _, w := range ways {
				n += w.proxy.Requests()
			}
			return n
		},
	}
}

// A way is how the exchanges of one process with one node go.
type way struct {
	proxy *redistest.Proxy

	mu     sync.Mutex // guards the rest
	faults []lockertest.Fault
	paused bool
}

func newWay(t *testing.T, node *redistest.Server) *way {
	w := &way{proxy: redistest.NewProxy(t, node)}
	w.proxy.Inject(w.fate)
	return w
}

func (w *way) breakNext(faults []lockertest.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = slices.Clone(faults)
}

func (w *way) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = true
}

func (w *way) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = false
}

func (w *way) fate(redistest.Command) redistest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.paused {
		return redistest.HangCommand
	}
	if len(w.faults) == 0 {
		return redistest.Pass
	}
	fault := w.faults[0]
	w.faults = w.faults[1:]
	return map[lockertest.Fault]redistest.Fault{
		lockertest.LoseReply:   redistest.DropReply,
		lockertest.CutReply:    redistest.CutReply,
		lockertest.LoseCommand: redistest.DropCommand,
		lockertest.Hang:        redistest.Hang,
	}[fault]
}

// servers lends real servers, since a hundred of them would take their time to
// start. Nobody shares one.
type servers struct {
	tb testing.TB // when it ends, they end

	mu   sync.Mutex
	idle []*redistest.Server
}

// get returns an empty server until t ends.
func (s *servers) get(t *testing.T) *redistest.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	var server *redistest.Server
	if last := len(s.idle) - 1; last >= 0 {
		server = s.idle[last]
		s.idle = s.idle[:last]
	} else {
		server = redistest.Real(s.tb)
	}
	server.Do(t, "FLUSHALL")
	t.Cleanup(func() {
		server.Do(t, "FLUSHALL")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.idle = append(s.idle, server)
	})
	return server
}
