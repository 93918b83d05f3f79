package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A holder that lives keeps its lock, by one command every third of the lease.
func TestRenewalExtends(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		begin := time.Now()
		l := lock(t, &g, &f, Options{Lease: 9 * s, MaxHold: time.Hour})
		for range 59 {
			after(s, func() {
				if f.Holder("k") == "" {
					t.Fatalf("the lock was free after %v", time.Since(begin))
				}
			})
		}
		extensions := f.Made("Extend")
		if len(extensions) != 19 {
			t.Errorf("%d extensions in 59 s", len(extensions))
		}
		for i, c := range extensions {
			if at := c.At.Sub(begin); at != time.Duration(i+1)*3*s || c.D != 9*s {
				t.Errorf("extension %d came after %v, for %v", i, at, c.D)
			}
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// MaxHold is the end, to the moment: the lock is free, the holder is told in every
// way, and the next in line gets its turn.
func TestRenewalStopsAtMaxHold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{Lease: 9 * s, MaxHold: 20 * s})
		ctx, cancel := context.WithCancelCause(t.Context())
		l.OnLost(cancel)
		var next *Lease
		go func() { next, _ = g.Lock(t.Context(), "k", &f, Options{Wait: time.Hour}) }()

		after(20*s-1, func() {
			if isLost(l) || ctx.Err() != nil || next != nil || f.Holder("k") != l.token {
				t.Error("the lease ended before MaxHold")
			}
		})
		after(1, func() {
			if !isLost(l) {
				t.Error("Lost is not closed")
			}
			if !errors.Is(context.Cause(ctx), ErrLost) {
				t.Errorf("the context's cause is %v", context.Cause(ctx))
			}
			if next == nil || f.Holder("k") != next.token {
				t.Error("the next in line did not get the lock")
			}
		})
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Unlock of the lost lock: %v", err)
		}
		if err := next.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock of the next one: %v", err)
		}
		wantIdle(t, &g)
	})
}

// The last lease before MaxHold is cut to end there, but never to less than what
// Redis counts in.
func TestRenewalMaxHoldBelowLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{Lease: 9 * s, MaxHold: 2500 * time.Microsecond})
		if d := f.Made("Take")[0].D; d != 3*time.Millisecond {
			t.Errorf("taken for %v", d)
		}
		after(3*time.Millisecond, func() {
			if !isLost(l) || len(f.Made("Extend")) != 0 {
				t.Error("it went on beyond MaxHold")
			}
		})
	})
}

// Redis is away for a while, and back before the lease is over: no loss.
func TestRenewalOutlastsAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		back := time.Now().Add(8 * s)
		f := fake{extend: func(_ context.Context, _ int, do func() error) error {
			if time.Now().Before(back) {
				return errRefused
			}
			return do()
		}}
		l := lock(t, &g, &f, Options{Lease: 9 * s})
		after(30*s, func() {
			if isLost(l) || f.Holder("k") != l.token {
				t.Error("lost")
			}
		})
		if n := len(f.Made("Extend")); n > 20 {
			t.Errorf("%d extensions in 30 s", n)
		}
	})
}

// Redis stays away, whether it refuses or says nothing, even for longer than it
// was asked to. The lease is lost when it is over: not before, and not after.
func TestRenewalGivesUpAtTheEnd(t *testing.T) {
	for name, extend := range map[string]func(context.Context, int, func() error) error{
		"refuses":     func(context.Context, int, func() error) error { return errRefused },
		"says no":     func(ctx context.Context, _ int, _ func() error) error { <-ctx.Done(); return errNoReply },
		"is silent":   func(context.Context, int, func() error) error { time.Sleep(time.Hour); return errNoReply },
		"is too late": func(_ context.Context, _ int, do func() error) error { time.Sleep(6 * s); return do() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				f := fake{extend: extend}
				l := lock(t, &g, &f, Options{Lease: 9 * s})
				go g.Lock(t.Context(), "k", &f, Options{Wait: time.Hour})
				after(9*s-1, func() {
					if isLost(l) {
						t.Error("lost before the lease was over")
					}
				})
				after(1, func() {
					if !isLost(l) {
						t.Error("not lost when the lease was over")
					}
					if holder := f.Holder("k"); holder == "" || holder == l.token {
						t.Errorf("the next in line did not get the lock, %q has it", holder)
					}
				})
				time.Sleep(2 * time.Hour) // let the silent one return
			})
		})
	}
}

// The key was deleted or taken over: that is the end, without another word.
func TestRenewalFindsLoss(t *testing.T) {
	for _, answer := range []error{ErrLost, ErrExpired, ErrForeign} {
		t.Run(answer.Error(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				f := fake{extend: func(context.Context, int, func() error) error { return answer }}
				l := lock(t, &g, &f, Options{Lease: 9 * s})
				after(3*s, func() {
					if !isLost(l) {
						t.Error("not lost at once")
					}
				})
				after(time.Hour, func() {
					if n := len(f.Made("Extend")); n != 1 {
						t.Errorf("%d extensions", n)
					}
				})
				wantIdle(t, &g)
			})
		})
	}
}

// Unlock comes while an extension is on its way. It does not wait for it, and
// whatever it answers is of no importance any more.
func TestRenewalIsOvertakenByUnlock(t *testing.T) {
	for name, answer := range map[string]error{"extended": nil, "expired": ErrExpired, "no reply": errNoReply} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var g Group
				f := fake{extend: func(context.Context, int, func() error) error { time.Sleep(s); return answer }}
				l := lock(t, &g, &f, Options{Lease: 9 * s})
				time.Sleep(3*s + s/2)
				begin := time.Now()
				if err := l.Unlock(t.Context()); err != nil || time.Since(begin) != 0 {
					t.Errorf("after %v: %v", time.Since(begin), err)
				}
				after(time.Hour, func() {
					if n := len(f.Made("Extend")); n != 1 || isLost(l) {
						t.Errorf("the watchdog went on: %d extensions, lost: %v", n, isLost(l))
					}
				})
				wantIdle(t, &g)
			})
		})
	}
}

// It does not matter when a holder asks to be told.
func TestLostIsToldToWhoComesLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
		var f fake
		l := lock(t, &g, &f, Options{Lease: s, MaxHold: s})
		early := l.Lost()
		synctest.Wait()
		if isLost(l) {
			t.Error("lost too early")
		}
		after(s, func() {
			if l.Lost() != early {
				t.Error("Lost returns a new channel")
			}
			<-early
			ctx, cancel := context.WithCancelCause(t.Context())
			l.OnLost(cancel)
			if !errors.Is(context.Cause(ctx), ErrLost) {
				t.Errorf("the context's cause is %v", context.Cause(ctx))
			}
		})
	})
	t.Run("and nobody had asked", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			var g Group
			var f fake
			l := lock(t, &g, &f, Options{Lease: s, MaxHold: s})
			time.Sleep(time.Minute)
			<-l.Lost()
		})
	})
}
