package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever gives up waiting takes the place out of the queue, with one exchange.
func TestQuit(t *testing.T) {
	gone := errors.New("gone")
	for name, tt := range map[string]struct {
		o    Options
		want error
	}{
		"cancelled":   {Options{}, gone},
		"its time up": {Options{Wait: s}, ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				site := newFakeSite(t)
				f := site.process()
				l := mustHave(t, site.process(), Options{})
				ctx, cancel := context.WithCancelCause(t.Context())
				got := contend(t, ctx, f, tt.o)
				time.AfterFunc(2*s, func() { cancel(gone) })
				if r := <-got; !errors.Is(r.err, tt.want) {
					t.Error(r.err)
				}
				if places := site.inQueue("k"); len(places) > 0 {
					t.Errorf("left in the queue: %q", places)
				}
				if quits, releases := len(f.Made("Quit")), len(f.Made("Release")); quits != 1 || releases != 0 {
					t.Errorf("%d times out of the queue, and %d releases of what was not taken", quits, releases)
				}
				mustUnlock(t, l)
				wantRest(t, site, f)
			})
		})
	}
}

// The lock is given to a place that is being given up. The next one has it at once.
func TestQuitWhenTheTurnComes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f, next := site.process(), site.process()
		l := mustHave(t, site.process(), Options{})
		f.quit = func(_ int, do func() error) error {
			mustUnlock(t, l)
			return do()
		}
		ctx, cancel := context.WithCancel(t.Context())
		first, second := contend(t, ctx, f, slow), contend(t, t.Context(), next, slow)
		begin := time.Now()
		cancel()
		if r := <-first; !errors.Is(r.err, context.Canceled) {
			t.Error(r.err)
		}
		mustWin(t, second)
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the next one waited %v", waited)
		}
		wantRest(t, site, f, next)
	})
}

// The exchange that takes a place out of the queue fails. It is repeated: before long
// the place is in nobody's way.
func TestQuitInDoubt(t *testing.T) {
	for name, fail := range map[string]func(do func() error) error{
		"no answer":     func(do func() error) error { do(); return errNoReply },
		"not sent":      func(func() error) error { return errRefused },
		"comes later":   func(do func() error) error { time.AfterFunc(s, func() { do() }); return errNoReply },
		"other Runner":  func(func() error) error { return errOther },
		"twice, at all": func(do func() error) error { do(); return do() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				site := newFakeSite(t)
				f, next := site.process(), site.process()
				f.quit = func(n int, do func() error) error {
					if n == 1 {
						return fail(do)
					}
					return do()
				}
				l := mustHave(t, site.process(), Options{})
				ctx, cancel := context.WithCancel(t.Context())
				first, second := contend(t, ctx, f, slow), contend(t, t.Context(), next, slow)
				cancel()
				<-first
				time.Sleep(s / 10)
				begin := time.Now()
				mustUnlock(t, l)
				mustWin(t, second)
				if waited := time.Since(begin); waited != 0 {
					t.Errorf("the next one waited %v", waited)
				}
				wantRest(t, site, f, next)
			})
		})
	}
}

// The exchange that joins the queue, or takes the lock, fails, and comes late, even
// when the place has been given up. Then the place is in the queue once more, with
// nobody behind it; but not for long.
func TestQuitOfWhatComesLater(t *testing.T) {
	for name, late := range map[string][]time.Duration{
		"no answer":        {0},
		"soon":             {10 * time.Millisecond},
		"later":            {s},
		"twice":            {0, s},
		"again and again":  {0, s / 10, s},
		"half a lease":     {5 * s},
		"half a lease, ok": {0, 5 * s},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				site := newFakeSite(t)
				f := site.process()
				f.queue = func(_ context.Context, _ int, do func() (Attempt, error)) (Attempt, error) {
					for _, d := range late {
						if d == 0 {
							do()
						} else {
							time.AfterFunc(d, func() { do() })
						}
					}
					return Attempt{}, errNoReply
				}
				l := mustHave(t, site.process(), Options{})
				if _, err := f.group().Lock(t.Context(), "k", f, Options{}); !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				if places := site.inQueue("k"); len(places) > 0 {
					t.Errorf("left in the queue: %q", places)
				}
				last := late[len(late)-1]
				time.Sleep(max(20*time.Millisecond, 2*last) + 1)
				synctest.Wait()
				if places := site.inQueue("k"); len(places) > 0 {
					t.Errorf("left in the queue: %q", places)
				}
				mustUnlock(t, l)
				wantRest(t, site, f)
			})
		})
	}
}

// It is granted to a caller who has gone by the time of the answer. Nobody keeps it.
func TestQuitAfterTaking(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		site := newFakeSite(t)
		f, next := site.process(), site.process()
		l := mustHave(t, site.process(), Options{})
		ctx, cancel := context.WithCancel(t.Context())
		f.queue = func(_ context.Context, n int, do func() (Attempt, error)) (Attempt, error) {
			if n > 1 {
				cancel()
			}
			return do()
		}
		first, second := contend(t, ctx, f, slow), contend(t, t.Context(), next, slow)
		begin := time.Now()
		mustUnlock(t, l)
		if r := <-first; !errors.Is(r.err, context.Canceled) {
			t.Error(r.err)
		}
		mustWin(t, second)
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the next one waited %v", waited)
		}
		wantRest(t, site, f, next)
	})
}
