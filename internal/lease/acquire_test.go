package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// second-long times read well, and cost nothing in a bubble.
const s = time.Second

// The wait is over after Options.Wait, whoever stands in the way: another process,
// a caller of this one, or the one after the other.
func TestAcquireWaitIsBounded(t *testing.T) {
	for name, tt := range map[string]struct{ here, elsewhere time.Duration }{
		"held by another process": {0, time.Hour},
		"held in this process":    {time.Hour, 0},
		"by both, in turn":        {2 * s, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				var f fake
				if tt.here > 0 {
					l := lock(t, &g, &f, Options{Lease: time.Hour})
					time.AfterFunc(tt.here, func() {
						f.Put("k", "another", tt.elsewhere)
						l.Unlock(t.Context())
					})
				} else {
					f.Put("k", "another", tt.elsewhere)
				}
				begin := time.Now()
				_, err := g.Lock(t.Context(), "k", &f, Options{Wait: 3 * s})
				if waited := time.Since(begin); !errors.Is(err, ErrTimeout) || waited != 3*s {
					t.Errorf("after %v: %v", waited, err)
				}
				if err != nil && !strings.Contains(err.Error(), "k: lock is still held") && !strings.Contains(err.Error(), "k: lock is held by ") {
					t.Errorf("the message %q does not name the key", err)
				}
				if tt.here <= 3*s {
					wantIdle(t, &g)
				}
				if got := f.Made("Release"); tt.here == 0 && len(got) != 0 {
					t.Errorf("%d commands to clean up after nothing", len(got))
				}
			})
		})
	}
}

// The time that Redis takes to answer counts, too. A try that has begun is let
// finish, since nobody knows what it did otherwise.
func TestAcquireWaitIncludesTries(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		f := fake{take: func(context.Context, int, func() (bool, error)) (bool, error) {
			time.Sleep(2 * s)
			return false, nil
		}}
		begin := time.Now()
		_, err := g.Lock(t.Context(), "k", &f, Options{Wait: 3 * s})
		if waited := time.Since(begin).Truncate(s); !errors.Is(err, ErrTimeout) || waited != 4*s {
			t.Errorf("after about %v: %v", waited, err)
		}
	})
}

// Who is no longer there to want the lock gets the reason at once, and leaves
// nothing behind: no place in line, no token, no pending try.
func TestAcquireContextEnds(t *testing.T) {
	gone := errors.New("the client has gone")
	cancelled := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(s, func() { cancel(gone) })
		return ctx, func() { cancel(nil) }
	}
	deadline := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, s)
	}
	for name, tt := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		here bool // whether it waits in line, or for another process
		want error
	}{
		"cancelled in line":         {cancelled, true, gone},
		"cancelled between tries":   {cancelled, false, gone},
		"out of time in line":       {deadline, true, context.DeadlineExceeded},
		"out of time between tries": {deadline, false, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				var f fake
				free := func() { f.Put("k", "another", 0) }
				if tt.here {
					l := lock(t, &g, &f, Options{})
					free = func() { l.Unlock(t.Context()) }
				} else {
					f.Put("k", "another", time.Hour)
				}
				ctx, cancel := tt.end(t.Context())
				defer cancel()
				begin := time.Now()
				_, err := g.Lock(ctx, "k", &f, Options{})
				if waited := time.Since(begin); !errors.Is(err, tt.want) || waited != s {
					t.Errorf("after %v: %v, want %v at once", waited, err, tt.want)
				}
				free()
				wantIdle(t, &g)
				tries := len(f.Made("Take"))
				after(time.Hour, func() {
					if f.Holder("k") != "" || len(f.Made("Take")) != tries {
						t.Error("it went on trying, and took the lock")
					}
				})
			})
		})
	}
}

func TestAcquireContextHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the client has gone")
		cancel(gone)
		_, err := g.Lock(ctx, "k", &f, Options{})
		if !errors.Is(err, gone) || errors.Is(err, ErrUnavailable) {
			t.Errorf("error %v, want the cause and no complaint about Redis", err)
		}
		if len(f.Calls()) != 0 {
			t.Errorf("Redis was asked: %+v", f.Calls())
		}
		wantIdle(t, &g)
	})
}

func TestAcquireBacksOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		f.Put("k", "another", time.Hour)
		_, err := g.Lock(t.Context(), "k", &f, Options{Wait: 10 * s, Backoff: Backoff{Min: s / 2, Max: 2 * s}})
		if !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		tries := f.Made("Take")
		if n := len(tries); n < 6 || n > 11 { // pauses 1/2, 1, 2, 2, ..., or half of that
			t.Fatalf("%d tries in 10 s", n)
		}
		for i, most := range []time.Duration{s / 2, s, 2 * s, 2 * s, 2 * s} {
			if pause := tries[i+1].At.Sub(tries[i].At); pause < most/2 || pause > most {
				t.Errorf("pause %d: %v, want %v to %v", i, pause, most/2, most)
			}
		}
	})
}

// A crowd in one process costs Redis one contender, and nobody in it waits longer
// than for those before it.
func TestAcquireServesItsCallersInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		begin := time.Now()
		for i := range 50 {
			go func() {
				l, err := g.Lock(t.Context(), "k", &f, Options{Wait: time.Hour})
				if err != nil {
					t.Error(err)
					return
				}
				if got, want := time.Since(begin), time.Duration(i)*s; got != want {
					t.Errorf("caller %d got the lock after %v, want %v", i, got, want)
				}
				time.Sleep(s)
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		after(time.Hour, func() {
			if takes := len(f.Made("Take")); takes != 50 {
				t.Errorf("%d tries for 50 locks", takes)
			}
			tokens := map[string]bool{}
			for _, c := range f.Made("Take") {
				tokens[c.Token] = true
			}
			if len(tokens) != 50 {
				t.Errorf("%d tokens for 50 leases", len(tokens))
			}
			wantIdle(t, &g)
		})
	})
}

func TestAcquireLimitsTheCrowd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		for range DefaultMaxWaiters {
			go g.Lock(ctx, "k", &f, Options{})
		}
		synctest.Wait()
		begin := time.Now()
		_, err := g.Lock(t.Context(), "k", &f, Options{})
		if waited := time.Since(begin); !errors.Is(err, ErrTooManyWaiters) || waited != 0 {
			t.Errorf("one too many: after %v: %v", waited, err)
		}
		if !strings.Contains(err.Error(), "k: too many") {
			t.Errorf("the message %q does not name the key", err)
		}
		cancel()
		synctest.Wait()
		l.Unlock(t.Context())
		wantIdle(t, &g)
	})
}

// An error that is none of Redis's ends the wait as it is.
func TestAcquirePassesErrorsOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		no := errors.New("no such record")
		f := fake{take: func(context.Context, int, func() (bool, error)) (bool, error) { return false, no }}
		if _, err := g.Lock(t.Context(), "k", &f, Options{}); !errors.Is(err, no) {
			t.Error(err)
		}
		if calls := len(f.Calls()); calls != 1 {
			t.Errorf("%d calls, want only the one that failed", calls)
		}
		wantIdle(t, &g)
	})
}
