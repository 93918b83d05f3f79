//go:build soak

package store

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

var (
	soakFor        = flag.Duration("soak", 10*time.Minute, "how long the soak lasts")
	soakOperations = flag.Int64("operations", 0, "how many requests are to succeed in the soak, however long it takes; 0: go by -soak")
	soakSeed       = flag.Uint64("seed", mathrand.Uint64(), "what the soak's faults are drawn from")
)

const (
	soakHot      = 4  // sessions, each with a crowd
	soakSessions = 24 // the others have a few workers each
	soakCrowd    = 24
	soakFew      = 2
	soakWorkers  = soakHot*soakCrowd + (soakSessions-soakHot)*soakFew
	soakPatience = 20 * time.Second
)

var (
	soakOptions = Options{Lease: time.Second, Timeout: 500 * time.Millisecond}
	soakTerms   = Terms{LockWait: 8 * time.Second, MaxHold: 2 * time.Second, MaxWaiters: soakWorkers}
)

// A soaked session is one that requests are made for. It may be ended.
type soaked struct {
	id    string
	chain *chain
	ended atomic.Bool // set before somebody tries to
}

// A soak is many requests in several processes, to a few sessions.
type soak struct {
	t        *testing.T
	stores   []*Store
	sessions [soakSessions]atomic.Pointer[soaked]
	began    [soakWorkers]atomic.Int64 // when each worker's request did; 0: it has none
	tally    tally
}

// Random faults for minutes: no answered write is lost, nobody waits for ever, and
// nothing is left over. Redis may be killed since it writes all to its log before it
// answers. (Whether it also syncs that shows only when the whole machine crashes.)
func TestSoak(t *testing.T) {
	t.Logf("-soak %v -operations %d -seed %d", *soakFor, *soakOperations, *soakSeed)
	r := redistest.Real(t, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")
	s := &soak{t: t}
	var proxies []*redistest.Proxy
	for range 2 { // messages do not get through a proxy
		p := redistest.NewProxy(t, r)
		proxies = append(proxies, p)
		s.stores = append(s.stores, New(p.Pool(t, 16), soakOptions))
	}
	for range 2 {
		s.stores = append(s.stores, New(r.Pool(t, 16), soakOptions))
	}
	for i := range s.sessions {
		s.replace(i, nil)
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	plague := newPlague(t, r, proxies, *soakSeed)
	var faults, workers sync.WaitGroup
	faults.Go(func() { plague.rage(ctx) })
	faults.Go(func() { plague.cut(ctx) })
	for id := range soakWorkers {
		workers.Go(func() { s.work(ctx, id) })
	}
	begun := time.Now()
	warm := s.watch(plague)
	stop()
	faults.Wait()
	workers.Wait()
	t.Logf("%v: %v; faults: %v; seed %d", time.Since(begun).Round(time.Second), &s.tally, plague, *soakSeed)
	if t.Failed() {
		return // early
	}
	s.settle(r)
	if now := measure(); now.goroutines > warm.goroutines || now.heap > warm.heap+warm.heap/2+4<<20 {
		t.Errorf("it grew: from %+v to %+v", warm, now)
	} else {
		t.Logf("goroutines and heap were %+v and are %+v", warm, now)
	}
}

// home is the session that most requests of a worker are for. If all were for any
// session, all workers would soon wait for the one that a fault has shut.
func home(worker int) int {
	if worker < soakHot*soakCrowd {
		return worker % soakHot
	}
	return soakHot + worker%(soakSessions-soakHot)
}

// work makes one request after the other.
func (s *soak) work(ctx context.Context, id int) {
	for n := 0; ctx.Err() == nil && !s.t.Failed(); n++ {
		slot := home(id)
		if mathrand.IntN(100) == 0 {
			slot = mathrand.IntN(soakSessions)
		}
		begun := time.Now()
		s.began[id].Store(begun.UnixMilli())
		what, err := s.request(slot, fmt.Sprintf("%d.%d", id, n))
		s.began[id].Store(0)
		if away := s.tally.count(s.t, what, err, time.Since(begun)); away {
			pause(ctx, time.Duration(mathrand.IntN(20))*time.Millisecond) // as clients do, let us hope
		}
	}
}

// replace puts a new session into a slot that has this one, unless Redis is away.
func (s *soak) replace(slot int, old *soaked) {
	if s.sessions[slot].Load() != old {
		return
	}
	next := &soaked{id: rand.Text(), chain: &chain{}}
	if err := s.stores[mathrand.IntN(len(s.stores))].Create(s.t.Context(), next.id, link{}.bytes(), soakTerms); err == nil {
		s.sessions[slot].CompareAndSwap(old, next)
	}
}

// request makes a request of any kind.
func (s *soak) request(slot int, mark string) (what string, err error) {
	session := s.sessions[slot].Load()
	st := s.stores[mathrand.IntN(len(s.stores))]
	chance := mathrand.IntN(10_000)
	ctx := s.t.Context()
	floor := session.chain.floor()
	if chance < 1500 {
		r, err := st.Load(ctx, session.id, soakTerms)
		return "load", s.judge(slot, session, r, floor, err)
	}
	if chance < 1700 { // an impatient client
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(mathrand.IntN(50_000))*time.Microsecond)
		defer cancel()
	}
	h, err := st.Take(ctx, session.id, soakTerms)
	if err != nil {
		return "take", s.excuse(slot, session, err)
	}
	if mathrand.IntN(500) == 0 { // the work
		pause(ctx, time.Duration(mathrand.IntN(20))*time.Millisecond)
	}
	return s.end(ctx, slot, session, h, floor, mark, chance)
}
