package lease

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// mustHave takes the lock for a process.
func mustHave(t *testing.T, f *fakeQueue, o Options) *Lease {
	t.Helper()
	l, err := f.group().Lock(t.Context(), "k", f, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A result is what came of a Lock, and after how long.
type result struct {
	lease *Lease
	err   error
	took  time.Duration
}

// contend makes a process wait for the lock, which another one has, until it has its
// place in the queue.
func contend(t *testing.T, ctx context.Context, f *fakeQueue, o Options) <-chan result {
	t.Helper()
	before := len(f.site.inQueue("k"))
	got := make(chan result, 1)
	go func() {
		g := f.group()
		begin := time.Now()
		l, err := g.Lock(ctx, "k", f, o)
		got <- result{l, err, time.Since(begin)}
	}()
	time.Sleep(20 * time.Millisecond)
	synctest.Wait()
	if n := len(f.site.inQueue("k")); n != before+1 {
		t.Fatalf("%d places in the queue, want %d", n, before+1)
	}
	return got
}

// mustWin waits for a contender's lease and gives it back.
func mustWin(t *testing.T, got <-chan result) result {
	t.Helper()
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	mustUnlock(t, r.lease)
	return r
}

// wantRest says that nothing is left a moment later.
func wantRest(t *testing.T, site *fakeSite, processes ...*fakeQueue) {
	t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	if holder := site.Holder("k"); holder != "" {
		t.Errorf("left in the lock: %q", holder)
	}
	if places := site.inQueue("k"); len(places) > 0 {
		t.Errorf("left in the queue: %q", places)
	}
	for _, f := range processes {
		wantQuiet(t, f.notifiers.shared, &f.site.pubsub)
	}
}

// slow are options with which asking again does not help.
var slow = Options{Backoff: Backoff{Min: time.Hour, Max: time.Hour}}

// The lock goes from process to process in the order they came, at once, and each is
// told. None asks meanwhile.
func TestAcquireGoesByTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		holder, a, b, c := site.process(), site.process(), site.process(), site.process()
		l := mustHave(t, holder, slow)
		var waiting []<-chan result
		for _, f := range []*fakeQueue{a, b, c} {
			waiting = append(waiting, contend(t, t.Context(), f, slow))
		}
		begin := time.Now()
		mustUnlock(t, l)
		for _, got := range waiting {
			mustWin(t, got)
		}
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("it took %v", waited)
		}
		if n := len(site.Made("Queue")); n != 6 {
			t.Errorf("asked %d times, want each once to join and once to take", n)
		}
		wantRest(t, site, a, b, c)
	})
}

// A holder that is killed tells nobody. It is not the fault of the notifier.
func TestAcquireAfterKilledHolder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f := site.process()
		site.Put("k", "of the dead", 10*s/3)
		got := contend(t, t.Context(), f, Options{})
		r := mustWin(t, got)
		if r.took > 10*s/3+20*time.Millisecond {
			t.Errorf("it took %v, longer than the lease of the dead", r.took)
		}
		f.notifiers.shared.mu.Lock()
		if f.notifiers.shared.subscription == nil {
			t.Error("it does not rely on the notifier any more")
		}
		f.notifiers.shared.mu.Unlock()
		wantRest(t, site, f)
	})
}

// Where there is no queue to be had, waiting is what it was without.
func TestAcquireWithoutQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f := site.process()
		f.queue = func(_ context.Context, _ int, do func() (Attempt, error)) (Attempt, error) {
			found, err := do()
			if found.Queued {
				site.mu.Lock()
				delete(site.queues, "k")
				site.mu.Unlock()
			}
			found.Queued, found.Joined = false, false
			return found, err
		}
		l := mustHave(t, site.process(), Options{})
		got := make(chan result)
		go func() {
			begin := time.Now()
			l, err := f.group().Lock(t.Context(), "k", f, Options{})
			got <- result{l, err, time.Since(begin)}
		}()
		time.Sleep(s)
		synctest.Wait()
		if n := len(f.Made("Queue")); n < 50 || n > 150 {
			t.Errorf("asked %d times in a second", n)
		}
		wantSubscriptions(t, &site.pubsub, 1, 1)
		mustUnlock(t, l)
		mustWin(t, got)
		wantRest(t, site, f)
	})
}

// Whoever asks once, or sleeps until the lease ends, waits in no queue.
func TestAcquireOfOthersDoesNotQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f := site.process()
		l := mustHave(t, site.process(), Options{})
		for _, o := range []Options{{Wait: NoWait}, {Policy: LeaseEnd, Wait: s}} {
			if _, err := f.group().Lock(t.Context(), "k", f, o); !errors.Is(err, ErrTimeout) {
				t.Error(err)
			}
		}
		if n := len(f.Made("Queue")); n > 0 || site.pubsub.asked() > 0 {
			t.Errorf("joined %d times, and listened %d times", n, site.pubsub.asked())
		}
		mustUnlock(t, l)
		wantRest(t, site, f)
	})
}

// An algorithm that panics, or ends the goroutine, leaves neither a turn nor a place.
func TestAcquirePanics(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("bug") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				site := newFakeSite(t)
				f := site.process()
				f.queue = func(context.Context, int, func() (Attempt, error)) (Attempt, error) {
					end()
					return Attempt{}, nil
				}
				l := mustHave(t, site.process(), Options{})
				g := f.group()
				go func() {
					defer func() { _ = recover() }()
					g.Lock(t.Context(), "k", f, Options{})
				}()
				time.Sleep(s)
				synctest.Wait()
				wantIdle(t, g)
				mustUnlock(t, l)
				wantRest(t, site, f)
			})
		})
	}
}
