//go:build soak

package records

import (
	"context"
	"crypto/rand"
	"errors"
	"expvar"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"runtime"
	"slices"
	"strings"
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
	soakWorkers  = soakHot*soakCrowd + (soakSessions-soakHot)*2
	soakPatience = 20 * time.Second
)

var (
	soakOptions = Options{Lease: time.Second, Timeout: 500 * time.Millisecond}
	soakTerms   = Terms{LockWait: 8 * time.Second, MaxHold: 2 * time.Second, MaxWaiters: soakWorkers}
)

// A soaked session counts the writes of its requests. It may be ended.
type soaked struct {
	id     string
	ended  atomic.Bool // set before a request tries to end it
	writes *writeLog
}

// A soak is many requests in several processes, to a few sessions.
type soak struct {
	t        *testing.T
	stores   []*Engine
	sessions [soakSessions]atomic.Pointer[soaked]
	began    [soakWorkers]atomic.Int64 // when each worker's request began; 0: it has none
	done     atomic.Int64              // requests that succeeded; failures must not count as progress
	lost     atomic.Int64              // locks that were lost
	outcomes expvar.Map
}

// Faults come at random for minutes. No acknowledged write is lost, no request waits for ever, and nothing is
// left over. Redis may be killed, since it writes each command to its log before it replies. (Only a crash of the
// whole machine could show whether it also syncs the log.)
func TestSoak(t *testing.T) {
	t.Logf("-soak %v -operations %d -seed %d", *soakFor, *soakOperations, *soakSeed)
	r := redistest.Real(t, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")
	s, plague := &soak{t: t}, &plague{t: t, r: r}
	for range 2 { // two stores behind a proxy, which carries no messages, and two without
		st, p := tapped(t, r, soakOptions)
		plague.proxies = append(plague.proxies, p)
		s.stores = append(s.stores, st, onPool(r.Pool(t, 16), soakOptions))
	}
	for i := range s.sessions {
		s.replace(i, nil)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { plague.rage(ctx, mathrand.New(mathrand.NewPCG(*soakSeed, 0))) })
	all.Go(func() { plague.cut(ctx, mathrand.New(mathrand.NewPCG(*soakSeed, 1))) })
	for id := range soakWorkers {
		all.Go(func() { s.work(ctx, id) })
	}
	warm := s.watch(plague)
	stop()
	all.Wait()
	t.Logf("%d operations: %v; faults: %v", s.done.Load(), &s.outcomes, &plague.kinds)
	if t.Failed() {
		return // early
	}
	s.settle(r)
	if now := measure(); now.goroutines > warm.goroutines || now.heap > warm.heap+warm.heap/2+4<<20 {
		t.Errorf("the process grew: from %+v to %+v", warm, now)
	}
}

// work makes one request after another, nearly all for one session. If each request were for a random session,
// all workers would soon wait for one that a fault has locked.
func (s *soak) work(ctx context.Context, id int) {
	home := id % soakHot
	if id >= soakHot*soakCrowd {
		home = soakHot + id%(soakSessions-soakHot)
	}
	for ctx.Err() == nil && !s.t.Failed() {
		slot := home
		if mathrand.IntN(100) == 0 {
			slot = mathrand.IntN(soakSessions)
		}
		s.began[id].Store(time.Now().UnixMilli())
		what, err := s.request(slot)
		s.began[id].Store(0)
		if s.note(what, err) {
			pause(ctx, time.Duration(mathrand.IntN(20))*time.Millisecond) // as clients should
		}
	}
}

// note counts the outcome of a request, and reports whether Redis was unavailable. An error that no
// fault can cause fails the soak.
func (s *soak) note(what string, err error) (away bool) {
	away = errors.Is(err, ErrUnavailable)
	known := []error{ErrUnavailable, ErrLost, ErrTimeout, ErrGone, ErrNotFound, ErrTooLarge, context.DeadlineExceeded}
	i := slices.IndexFunc(known, func(known error) bool { return errors.Is(err, known) })
	switch {
	case err == nil:
		s.done.Add(1)
	case i < 0:
		s.t.Errorf("%s: %v", what, err)
	default:
		what += ": " + known[i].Error()
	}
	if errors.Is(err, ErrLost) {
		s.lost.Add(1)
	}
	s.outcomes.Add(what, 1)
	return away
}

// replace puts a new session into the slot of this one, unless Redis is unavailable.
func (s *soak) replace(slot int, old *soaked) {
	if s.sessions[slot].Load() != old {
		return
	}
	next := &soaked{id: rand.Text(), writes: &writeLog{answered: make(map[int]bool)}}
	if err := s.stores[mathrand.IntN(len(s.stores))].Create(s.t.Context(), next.id, content(0), soakTerms); err == nil {
		s.sessions[slot].CompareAndSwap(old, next)
	}
}

// request makes a request of any kind.
func (s *soak) request(slot int) (what string, err error) {
	session := s.sessions[slot].Load()
	st := s.stores[mathrand.IntN(len(s.stores))]
	chance := mathrand.IntN(10_000)
	ctx := s.t.Context()
	least := session.writes.least()
	if chance < 1500 {
		r, err := st.Load(ctx, session.id, soakTerms)
		if err != nil {
			return "load", s.excuse(slot, session, err)
		}
		_, err = read(r, least)
		return "load", err
	}
	if chance < 1700 { // an impatient client
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(mathrand.IntN(50_000))*time.Microsecond)
		defer cancel()
	}
	h, _, err := st.Take(ctx, session.id, soakTerms)
	if err != nil {
		return "take", s.excuse(slot, session, err)
	}
	if mathrand.IntN(500) == 0 { // the work
		pause(ctx, time.Duration(mathrand.IntN(20))*time.Millisecond)
	}
	return s.end(ctx, slot, session, h, least, chance)
}

// end ends a request's hold in one of the possible ways. If the end succeeds, what the hold has read is checked.
func (s *soak) end(ctx context.Context, slot int, session *soaked, h *Hold, least, chance int) (what string, err error) {
	n, wrong := read(h.Record, least)
	switch {
	case chance < 3000:
		what, err = "touch", h.Touch(ctx)
	case chance < 3800:
		h.Release(ctx)
		return "panic", nil
	case chance < 3805:
		return "save too much", h.Save(ctx, make([]byte, DefaultMaxBytes))
	case chance < 3810:
		session.ended.Store(true)
		what, err = "destroy", h.Destroy(ctx)
		s.replace(slot, session)
	case chance < 3840:
		session.ended.Store(true)
		after := &soaked{id: rand.Text(), writes: session.writes}
		what, err = "renew", session.writes.answer(n+1, h.Renew(ctx, after.id, content(n+1)))
		if err != nil {
			s.replace(slot, session)
		} else {
			s.sessions[slot].CompareAndSwap(session, after)
		}
	default:
		what, err = "save", session.writes.answer(n+1, h.Save(ctx, content(n+1)))
	}
	if err == nil {
		err = wrong
	}
	return what, err
}

// excuse returns the error of a request that got no session. If the session is gone, some request must have ended
// it.
func (s *soak) excuse(slot int, session *soaked, err error) error {
	if errors.Is(err, ErrGone) || errors.Is(err, ErrNotFound) {
		if !session.ended.Load() {
			s.t.Errorf("session %s: %v, but no request ended it", session.id, err)
		}
		s.replace(slot, session) // if the request that ended it could not
	}
	return err
}

// settle checks, after all faults, that each session has all acknowledged writes, that all processes can use it,
// and that only records are left. A late command may have put a place into the queue of a session that has ended
// since, or may have staged a large record. Both stay for a minute.
func (s *soak) settle(r *redistest.Server) {
	for slot := range s.sessions {
		session := s.sessions[slot].Load()
		if session.ended.Load() {
			continue // perhaps it was ended, and not replaced because Redis was unavailable
		}
		for _, st := range s.stores {
			least, begun := session.writes.least(), time.Now()
			h, _, err := st.Take(s.t.Context(), session.id, soakTerms)
			if err != nil {
				s.t.Errorf("in the end: %v", err)
				continue
			}
			if took := time.Since(begun); took > soakTerms.LockWait/2 {
				s.t.Errorf("in the end, a session was locked for %v", took)
			}
			n, wrong := read(h.Record, least)
			err = session.writes.answer(n+1, h.Save(s.t.Context(), content(n+1)))
			if err := errors.Join(wrong, session.writes.sum(n+1), err); err != nil {
				s.t.Errorf("in the end: %v", err)
			}
		}
	}
	left := func() []string {
		return slices.DeleteFunc(r.Keys(s.t), func(key string) bool {
			return !strings.HasSuffix(key, ".lock") && !strings.HasSuffix(key, ".queue") && !strings.Contains(key, ".new.")
		})
	}
	for begun := time.Now(); len(left()) > 0; lapse(10 * time.Millisecond) {
		if time.Since(begun) > time.Minute+soakPatience {
			s.t.Fatalf("in the end, these are left: %q", left())
		}
	}
}

// watch waits until the soak is over, or has failed. No request may take for ever, and some must succeed. It
// returns the size of the process after a tenth of the soak, while all workers run.
func (s *soak) watch(p *plague) (warm size) {
	begun := time.Now()
	moved, before := begun, int64(0)
	for share := 0.0; share < 1 && !s.t.Failed(); {
		lapse(time.Second)
		now, done := time.Now(), s.done.Load()
		if done > before {
			moved, before = now, done
		}
		longest := now.Sub(moved)
		for id := range s.began {
			if at := s.began[id].Load(); at > 0 {
				longest = max(longest, now.Sub(time.UnixMilli(at)))
			}
		}
		if longest > soakPatience {
			stacks := make([]byte, 1<<20)
			s.t.Fatalf("a request does not end, or none succeeds\n%s", stacks[:runtime.Stack(stacks, true)])
		}
		if lost := s.lost.Load(); done > 10_000 && lost > done/50 {
			s.t.Errorf("%d locks were lost: the fence keeps the data right, but the locks hardly exclude", lost)
		}
		for _, proxy := range p.proxies {
			proxy.Forget() // so that their records do not grow
		}
		share = now.Sub(begun).Seconds() / soakFor.Seconds()
		if *soakOperations > 0 {
			share = float64(done) / float64(*soakOperations)
		}
		if warm.heap == 0 && share > 0.1 {
			warm = measure()
		}
	}
	return warm
}

// A size is what must not grow.
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

// A writeLog is what is known about the writes to one session, whose data is their number. So it detects a lost
// write: the number goes back, is acknowledged twice, or is too small in the end.
type writeLog struct {
	mu       sync.Mutex // guards all below
	last     int        // the last acknowledged number
	answered map[int]bool
	total    int // of the acknowledged writes
	doubtful int // writes that failed, so that nobody knows whether they were done
}

// content returns the data of a session after the nth write. One in eight is so large that the
// record is staged, and one in 128 is far larger than that.
func content(n int) []byte {
	more := 0
	switch {
	case n%128 == 0:
		more = 20 * stagedFrom
	case n%8 == 0:
		more = stagedFrom
	}
	return fmt.Append(nil, n, strings.Repeat(" ", more))
}

// read reads the number of writes. It must not be less than least was when the request began.
func read(r Record, least int) (n int, err error) {
	_, err = fmt.Sscan(string(r.Data), &n)
	if err == nil && n < least {
		err = fmt.Errorf("write %d was acknowledged, but then %d was read", least, n)
	}
	return n, err
}

// least returns the least number that a request may read if it begins now.
func (w *writeLog) least() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// answer notes the outcome of the nth write.
func (w *writeLog) answer(n int, err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.doubtful++
		return err
	}
	if w.answered[n] {
		return fmt.Errorf("write %d was acknowledged twice", n)
	}
	w.answered[n] = true
	delete(w.answered, n-1000) // so that the map does not grow
	w.total++
	w.last = max(w.last, n)
	return nil
}

// sum checks the number of writes while no request writes.
func (w *writeLog) sum(n int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n < w.total || n > w.total+w.doubtful {
		return fmt.Errorf("%d writes were acknowledged and %d failed, but there are %d", w.total, w.doubtful, n)
	}
	return nil
}
