package faults

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/faults/rig"
	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// These are settings of the demos in a scene. The times are short, so that a fault ends soon.
const (
	lease    = time.Second
	lockWait = 5 * time.Second
	timeout  = 2 * time.Second // the store's default, for one round trip

	// patient is the lease, and the timeout, of scenes in which no process or node dies. There nothing may be
	// refused, however busy the machine is.
	patient = 10 * time.Second
)

// A setting describes a scene. The zero value is two demos, connected directly to a Redis that stores
// nothing on disk.
type setting struct {
	redis  []string // flags of redis-server
	env    []string // its environment
	demos  int      // 0: two
	flags  []string // of the demos
	wired  bool     // a wire between each demo and Redis
	logins bool     // some requests are logins and logouts
	losing bool     // Redis may lose sessions; not with logins
	apart  bool     // Redis may be unreachable for longer than a lease

	// url returns the URL at which the next demo finds Redis; nil: directly, or through its wire.
	url func(*scene) string

	visitors, clients int // 0: four visitors with four clients each

	transport http.RoundTripper // of the visitors; nil: one that keeps connections

	slack int // how many more connections a demo may have at the end; 0: slack

	lease    time.Duration // 0: lease
	exchange time.Duration // the timeout of one round trip, only in clusters; 0: timeout

	// longest is the longest time that a request may take, whatever happens, on a machine without delays. 0: a
	// wait for the session, and a round trip without a reply before and after it.
	longest time.Duration

	// recovery is how soon after a fault all visitors must be served again: after a lease, with a timeout
	// before and after it. complete sets it.
	recovery time.Duration
}

// A scene is a site: demos that share a Redis, and visitors.
type scene struct {
	*testing.T
	setting

	redis   *redistest.Server  // nil if it is a cluster
	cluster *redistest.Cluster // nil if it is one server
	demos   []*demotest.Demo
	wires   []*rig.Wire // one for each demo, if wired

	sites    history.Sites // the demos that visitors use
	visitors []*history.Visitor

	files     []int     // open in each demo, with all visitors there
	begun     time.Time // when visitors came
	over      time.Time // when the fault ended
	recovered time.Duration
	seen      string // for the table, besides the numbers

	setback *history.Setback // set by a fault in which Redis itself loses writes
	lost    int              // confirmed writes
}

// stage starts a scene, in parallel with those of other tests. The table shows fault and promise.
func stage(t *testing.T, fault, promise string, with setting) *scene {
	t.Helper()
	t.Parallel()
	with = with.complete()
	s := &scene{T: t, setting: with, redis: redistest.RealWith(t, with.env, with.redis...)}
	t.Cleanup(func() { s.row(fault, promise) })
	for range with.demos {
		s.add(s.wire())
	}
	return s
}

// complete sets the defaults.
func (with setting) complete() setting {
	with.visitors = cmp.Or(with.visitors, 4)
	with.clients = cmp.Or(with.clients, 4)
	with.demos = cmp.Or(with.demos, 2)
	with.lease = cmp.Or(with.lease, lease)
	with.exchange = cmp.Or(with.exchange, timeout)
	with.longest = cmp.Or(with.longest, lockWait+2*with.exchange*5/4+time.Second)
	with.recovery = with.lease + 2*with.exchange
	return with
}

func (s *scene) keys() []string {
	s.Helper()
	if s.cluster != nil {
		return s.cluster.Keys(s.T)
	}
	return s.redis.Keys(s.T)
}

// at returns the server that has a key.
func (s *scene) at(key string) *redistest.Server {
	s.Helper()
	if s.cluster != nil {
		return s.cluster.Owner(s.T, s.cluster.Slot(s.T, key))
	}
	return s.redis
}

// wire returns the URL by which the next demo reaches Redis.
func (s *scene) wire() string {
	if s.url != nil {
		return s.url(s)
	}
	if !s.wired {
		return s.redis.URL
	}
	w := rig.NewWire(s.T, s.redis.Addr)
	s.wires = append(s.wires, w)
	return w.URL
}

// add starts one more demo.
func (s *scene) add(redisURL string, flags ...string) *demotest.Demo {
	s.Helper()
	d := demotest.Start(s.T, append(append([]string{"-redis", redisURL, "-lease", s.lease.String(), "-lock-wait", lockWait.String()},
		s.flags...), flags...)...)
	s.open(d)
	return d
}

// open lets visitors use a demo.
func (s *scene) open(d *demotest.Demo) {
	s.demos = append(s.demos, d)
	s.sites.Add(d.URL)
}

// close keeps visitors away from a demo.
func (s *scene) close(d *demotest.Demo) { s.sites.Remove(d.URL) }

// run makes the fault happen while visitors make requests, and then checks all responses. fault returns
// when the fault is over; its ctx ends with the test. From then on run measures the time until each
// visitor's writes succeed again.
func (s *scene) run(fault func(ctx context.Context)) {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	s.begun = time.Now()
	var running sync.WaitGroup
	for i := range s.setting.visitors {
		v := &history.Visitor{HTTP: s.visitorsClient(), Site: s.sites.Any, Logins: s.logins, Losing: s.losing}
		s.visitors = append(s.visitors, v)
		running.Go(func() { v.Run(ctx, s.clients, seed+uint64(i)) })
	}
	s.awaitWrites("before the fault", time.Now())
	pause(ctx, warmUp())
	for _, d := range s.demos {
		s.files = append(s.files, d.Files(s.T))
	}

	fault(ctx)
	s.over = time.Now()
	s.recovered = s.awaitWrites("after the fault", s.over)
	s.backWithin(s.recovery)
	pause(ctx, warmUp())
	stop()
	running.Wait()
	for _, v := range s.visitors {
		v.HTTP.CloseIdleConnections() // their number is up to chance, and the demos have them open
	}
	s.judge()
}

// warmUp is how long visitors make requests before and after a fault.
func warmUp() time.Duration { return unlessShort(time.Second, 300*time.Millisecond) }

// unlessShort returns full, or short with -short.
func unlessShort[T any](full, short T) T {
	if testing.Short() {
		return short
	}
	return full
}

// awaitWrites waits until a write of each visitor that was sent after the moment has succeeded, and
// returns how long that took.
func (s *scene) awaitWrites(when string, moment time.Time) time.Duration {
	s.Helper()
	for _, v := range s.visitors {
		eventually(s.T, 2*s.longest, when+": a write of each visitor is answered", func() bool { return v.WroteSince(moment) })
	}
	return time.Since(moment)
}

// judge asserts what must hold after every fault.
func (s *scene) judge() {
	s.Helper()
	sum := s.summary()
	for i, v := range s.visitors {
		if err := s.check(v); err != nil {
			s.Errorf("visitor %d, -seed %d: %v", i, seed, err)
		}
	}
	if late := lateSince(s.begun); sum.Longest > s.longest+late {
		s.Errorf("a request took %v, more than %v and the %v by which the machine was late", sum.Longest.Round(time.Millisecond), s.longest, late)
	}
	s.nothingLeft()
}

func (s *scene) check(v *history.Visitor) error {
	if s.setback == nil {
		return v.Check()
	}
	lost, err := v.CheckSetback(*s.setback)
	s.lost += lost
	return err
}

func (s *scene) summary() (sum history.Summary) {
	for _, v := range s.visitors {
		sum.Add(v.Summary())
	}
	return sum
}

// nothingLeft asserts that no lock outlives its lease, and that the demos have no more connections open
// than before the fault.
func (s *scene) nothingLeft() {
	s.Helper()
	var left []string
	eventually(s.T, s.recovery, "no lock and no queue is left", func() bool {
		left = slices.DeleteFunc(guardsIn(s.keys()), func(key string) bool {
			return strings.HasSuffix(key, ".queue") && s.orphaned(key)
		})
		return len(left) == 0
	})
	if len(left) > 0 {
		s.Errorf("left: %v", left)
	}
	s.stagedForAMinute()
	for i, before := range s.files {
		if d := s.demos[i]; d.Alive() {
			most := before + cmp.Or(s.slack, slack)
			eventually(s.T, 5*time.Second, fmt.Sprintf("demo %d has no more than %d files open, and had %d at first", i, most, d.Files(s.T)), func() bool {
				return d.Files(s.T) <= most
			})
		}
	}
}

// orphaned reports whether a queue may have lost its processes: Redis went back to a time when the queue existed,
// or the processes tried for a lease to leave it, and could not. Such a queue expires within a minute.
func (s *scene) orphaned(queue string) bool {
	left := s.at(queue).Do(s.T, "PTTL", queue).(int64)
	return (s.apart || s.setback != nil || slices.Contains(s.setting.redis, "--appendonly")) && left <= time.Minute.Milliseconds() && left != -1
}

// slack is by how much a demo's connections to Redis and to visitors may vary.
const slack = 8

func (s *scene) visitorsClient() *http.Client {
	c := client(s.T)
	c.Transport = cmp.Or(s.transport, c.Transport)
	return c
}

func client(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 32}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// eventually waits until ok returns true: for patience, which is enough on a machine without delays, plus the
// delays of this machine.
func eventually(t *testing.T, patience time.Duration, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); pause(t.Context(), 2*time.Millisecond) {
		if time.Since(begun) > patience+lateSince(begun) {
			t.Errorf("not after %v, though the machine was only %v late: %s", time.Since(begun), lateSince(begun), what)
			return
		}
	}
}

// within asserts that something that began at a moment has ended within the limit, and returns how long it took.
func within(t *testing.T, what string, begun time.Time, limit time.Duration) time.Duration {
	t.Helper()
	took := time.Since(begun)
	if late := lateSince(begun); took > limit+late {
		t.Errorf("%s took %v, more than %v and the %v by which the machine was late", what, took.Round(time.Millisecond), limit, late)
	}
	return took
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// chance returns a source of random numbers for a test, seeded by -seed.
func chance(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
