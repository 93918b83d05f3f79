//go:build soak

package store

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/testdata/redistest"
)

var (
	soakFor  = flag.Duration("soak", 10*time.Minute, "how long the soak lasts")
	soakSeed = flag.Uint64("seed", mathrand.Uint64(), "what the soak's faults are drawn from")
)

const (
	soakWorkers  = 48
	soakSessions = 24
	soakHot      = 3 // that most requests are for
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

	mu    sync.Mutex // guards the rest
	kinds map[string]int
	worst time.Duration
}

// Random faults for minutes: no answered write is lost, nobody waits for ever, and
// nothing is left over.
func TestSoak(t *testing.T) {
	t.Logf("-soak %v -seed %d", *soakFor, *soakSeed)
	r := redistest.Real(t)
	s := &soak{t: t, kinds: make(map[string]int)}
	var proxies []*redistest.Proxy
	for range 3 { // messages do not get through a proxy
		p := redistest.NewProxy(t, r)
		proxies = append(proxies, p)
		s.stores = append(s.stores, New(p.Pool(t, 16), soakOptions))
	}
	s.stores = append(s.stores, New(r.Pool(t, 16), soakOptions))
	for i := range s.sessions {
		s.replace(i, nil)
	}

	ctx, stop := context.WithTimeout(t.Context(), *soakFor)
	defer stop()
	plague := newPlague(t, r, proxies, *soakSeed)
	var faults, workers sync.WaitGroup
	faults.Go(func() { plague.rage(ctx) })
	for id := range soakWorkers {
		workers.Go(func() { s.work(ctx, id) })
	}
	warm := s.watch(ctx)
	faults.Wait()
	workers.Wait()
	s.settle(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d faults; the longest request took %v; outcomes: %v", plague.count.Load(), s.worst.Round(time.Millisecond), s.kinds)
	if now := measure(); now.goroutines > warm.goroutines || now.heap > warm.heap+warm.heap/2+4<<20 {
		t.Errorf("it grew: from %+v to %+v", warm, now)
	} else {
		t.Logf("goroutines and heap were %+v and are %+v", warm, now)
	}
}

// A size is what may not grow.
type size struct {
	goroutines int
	heap       uint64
}

func measure() size {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return size{runtime.NumGoroutine(), m.HeapAlloc}
}

// watch looks for requests that do not end, until ctx does. It returns the size after
// a tenth of the time, while all workers run.
func (s *soak) watch(ctx context.Context) (warm size) {
	begun := time.Now()
	for ctx.Err() == nil {
		pause(ctx, time.Second)
		for id := range s.began {
			if at := s.began[id].Load(); at > 0 && time.Since(time.UnixMilli(at)) > soakPatience {
				stacks := make([]byte, 1<<20)
				s.t.Fatalf("worker %d is stuck\n%s", id, stacks[:runtime.Stack(stacks, true)])
			}
		}
		if warm.heap == 0 && time.Since(begun) > *soakFor/10 {
			warm = measure()
		}
	}
	return warm
}

// work makes one request after the other.
func (s *soak) work(ctx context.Context, id int) {
	for n := 0; ctx.Err() == nil; n++ {
		slot := mathrand.IntN(soakSessions)
		if mathrand.IntN(10) < 8 {
			slot = mathrand.IntN(soakHot)
		}
		begun := time.Now()
		s.began[id].Store(begun.UnixMilli())
		what, err := s.request(slot, fmt.Sprintf("%d.%d", id, n))
		s.began[id].Store(0)
		s.count(what, err, time.Since(begun))
	}
}

func (s *soak) count(what string, err error, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worst = max(s.worst, took)
	for _, known := range []error{ErrUnavailable, ErrLost, ErrTimeout, ErrGone, ErrNotFound, ErrTooLarge, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			what, err = what+": "+known.Error(), nil
			break
		}
	}
	if err != nil {
		s.t.Error(err)
	}
	s.kinds[what]++
}

// replace puts a new session into a slot that has this one, unless Redis is away.
func (s *soak) replace(slot int, old *soaked) {
	next := &soaked{id: rand.Text(), chain: &chain{}}
	if err := s.stores[mathrand.IntN(len(s.stores))].Create(s.t.Context(), next.id, link{}.bytes(), soakTerms); err == nil {
		s.sessions[slot].CompareAndSwap(old, next)
	}
}

// request makes a request of any kind.
func (s *soak) request(slot int, mark string) (what string, err error) {
	session := s.sessions[slot].Load()
	st := s.stores[mathrand.IntN(len(s.stores))]
	chance := mathrand.IntN(1000)
	ctx := s.t.Context()
	floor := session.chain.floor()
	if chance < 150 {
		r, err := st.Load(ctx, session.id, soakTerms)
		return "load", s.judge(slot, session, r, floor, err)
	}
	if chance < 200 { // an impatient client
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(mathrand.IntN(5000))*time.Microsecond)
		defer cancel()
	}
	h, err := st.Take(ctx, session.id, soakTerms)
	if err != nil {
		return "take", s.excuse(slot, session, err)
	}
	if mathrand.IntN(20) == 0 { // the work
		pause(ctx, time.Duration(mathrand.IntN(20))*time.Millisecond)
	}
	return s.end(ctx, slot, session, h, floor, mark, chance)
}
