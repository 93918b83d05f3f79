package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// An extension lasts beyond MaxHold. After a shorter one the lease is renewed as before: until MaxHold or the end
// of an earlier extension, whichever is later.
func TestExtendLastsBeyondMaxHold(t *testing.T) {
	each(t, map[string][]time.Duration{
		"longer":           {time.Hour},
		"longer, and less": {time.Hour, s},
	}, func(t *testing.T, asked []time.Duration) {
		var f fake
		_, l := newLease(t, &f, Options{Lease: 9 * s, MaxHold: 20 * s})
		for _, d := range asked {
			wantError(t, l.Extend(t.Context(), d), nil)
		}
		redistest.Elapse(time.Hour - 1)
		wantLost(t, l, false)
		f.wantHolder(t, l.Token())
		redistest.Elapse(1)
		wantLost(t, l, true)
	})
}

// An extension is at least a millisecond, and a whole number of milliseconds, since Redis counts in them. A
// released lease cannot be extended.
func TestExtendAsksForWholeMilliseconds(t *testing.T) {
	var f fake
	withLease(t, &f, Options{}, func(t *testing.T, _ *Locks, l *Lease) {
		for _, d := range []time.Duration{-s, 0, time.Millisecond - 1} {
			if err := l.Extend(t.Context(), d); err == nil {
				t.Errorf("Extend by %v: no error", d)
			}
		}
		for _, d := range []time.Duration{30*s + 1, math.MaxInt64} {
			wantError(t, l.Extend(t.Context(), d), nil)
		}
		mustUnlock(t, l)
		err := l.Extend(t.Context(), s)
		wantError(t, err, ErrExpired)
		if text := "locker: extending k: the lease was released"; err == nil || err.Error() != text {
			t.Errorf("%v, want %q: nobody knows who has the lock", err, text)
		}
		if made := f.Made("Extend"); len(made) != 2 || made[0].D != 30*s+time.Millisecond || made[1].D < time.Hour {
			t.Errorf("Redis was asked for %+v", made)
		}
	})
}

// A loss is final. The first Extend or Unlock after it only reports whether another has the lock. Neither takes
// the lock back, since the holder was notified of the loss. Unlock also reports why it was lost.
func TestALossIsFinal(t *testing.T) {
	extend := func(t *testing.T, l *Lease) error { return l.Extend(t.Context(), time.Hour) }
	unlock := func(t *testing.T, l *Lease) error {
		err := l.Unlock(t.Context())
		if err == nil || !strings.Contains(err.Error(), "MaxHold") {
			t.Errorf("Unlock does not say why: %v", err)
		}
		return err
	}
	type situation struct {
		holder string // of the key; "me" stands for the token of the lease
		calls  []func(*testing.T, *Lease) error
		want   error
	}
	each(t, map[string]situation{
		"nobody took it":                {"", []func(*testing.T, *Lease) error{extend, unlock}, ErrExpired},
		"another did":                   {"another", []func(*testing.T, *Lease) error{extend, unlock}, ErrLost},
		"its token is there for Extend": {"me", []func(*testing.T, *Lease) error{extend, unlock}, ErrExpired},
		"its token is there for Unlock": {"me", []func(*testing.T, *Lease) error{unlock}, ErrExpired},
	}, func(t *testing.T, tt situation) {
		var f fake
		_, l := newLease(t, &f, Options{Lease: s, MaxHold: s})
		redistest.Elapse(s)
		switch tt.holder {
		case "":
		case "me":
			f.Put("k", l.Token(), time.Hour)
		default:
			f.Put("k", tt.holder, time.Hour)
		}
		for _, call := range tt.calls {
			wantError(t, call(t, l), tt.want)
		}
		wantError(t, l.Unlock(t.Context()), tt.want) // a second Unlock does nothing
		if holder := f.Holder("k"); holder == l.Token() || tt.want == ErrLost && holder != "another" {
			t.Errorf("the lock holds %q", holder)
		}
	})
}

// Redis does not reply to Extend, or refuses it. That is no loss yet: the rest of the lease remains, whether or
// not the command was done. An Extend by less than what is left shortens nothing.
func TestExtendInDoubt(t *testing.T) {
	type situation struct {
		by     time.Duration
		extend func(call) error
		valid  time.Duration // after the Extend
		lasts  time.Duration // until the lock is lost
	}
	each(t, map[string]situation{
		"for longer":              {time.Hour, first(lands(errNoReply, 0)), 9 * s, time.Minute},
		"for longer, refused":     {time.Hour, first(fails(errRefused)), 9 * s, time.Minute},
		"for less":                {s, first(lands(errNoReply, 0)), 9 * s, time.Minute},
		"for less, later refused": {s, func(c call) error { return []error{lands(errNoReply, 0)(c), errRefused}[min(c.n-1, 1)] }, 9 * s, 9 * s},
		"for less, refused":       {s, fails(errRefused), 9 * s, 9 * s},
	}, func(t *testing.T, tt situation) {
		f := fake{hooks{extend: tt.extend}}
		_, l := newLease(t, &f, Options{Lease: 9 * s})
		wantError(t, l.Extend(t.Context(), tt.by), ErrUnavailable)
		if v := l.Validity(); v != tt.valid {
			t.Errorf("the holder relies on %v, want %v", v, tt.valid)
		}
		redistest.Elapse(tt.lasts - 1)
		wantLost(t, l, false)
		f.wantHolder(t, l.Token())
		redistest.Elapse(1)
		wantLost(t, l, true)
	})
}

// An Extend by less than what is left asks whether the lock is still held, and shortens nothing, however long Redis takes
// to reply. That holds also if the holder relies on a part of the lease only.
func TestExtendDoesNotShorten(t *testing.T) {
	each(t, map[string]func(*fake) Algorithm{
		"all of a lease": func(f *fake) Algorithm { return f },
		"a part of it":   func(f *fake) Algorithm { return careful{f} },
	}, func(t *testing.T, algorithm func(*fake) Algorithm) {
		f := fake{hooks{extend: slowly(10 * time.Millisecond)}}
		var g Locks
		l := lock(t, &g, algorithm(&f), Options{Lease: 9 * s})
		for _, d := range []time.Duration{5 * time.Millisecond, 15 * time.Millisecond, s} {
			redistest.Elapse(s / 2)
			before := l.Validity()
			wantError(t, l.Extend(t.Context(), d), nil)
			if v := l.Validity(); v < before-10*time.Millisecond {
				t.Errorf("Extend by %v has shortened the lease from %v to %v", d, before, v)
			}
		}
		redistest.Elapse(s)
		wantLost(t, l, false)
		mustUnlock(t, l)
	})
}

// careful holders rely on less than all of a lease.
type careful struct{ *fake }

func (careful) Valid(lease time.Duration) time.Duration { return lease*9/10 - 2*time.Millisecond }

// The lease ends while Extend waits for Redis. The holder is notified then, without waiting for the reply. A
// reply that comes too late does not count.
func TestExtendTakesTooLong(t *testing.T) {
	var f fake
	f.extend = func(c call) error {
		pause(time.Minute)
		f.Put("k", f.Made("Take")[0].Token, s) // so that Redis agrees to the Extend
		return c.do()
	}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, g *Locks, l *Lease) {
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(t.Context(), time.Hour) }()
		redistest.Elapse(9 * s)
		wantLost(t, l, true)
		wantIdle(t, g)
		wantError(t, <-extended, ErrExpired)
		f.wantHolder(t, "")
	})
}

// After a pause of the process, Extend may come before the alarm. Then the lease is lost, although Redis was not asked.
func TestExtendAfterAPause(t *testing.T) {
	f := fake{hooks{extend: func(c call) error {
		if c.ctx.Err() != nil {
			return errRefused // as every client returns
		}
		return c.do()
	}}}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, g *Locks, l *Lease) {
		l.mu.Lock()
		g.CancelAlarm(&l.alarm)
		l.mu.Unlock()
		redistest.Elapse(10 * s)
		wantError(t, l.Extend(t.Context(), s), ErrExpired)
		wantLost(t, l, true)
	})
}

// Extend waits for an extension that is under way until its context ends.
func TestExtendLeavesWithItsContext(t *testing.T) {
	f := fake{hooks{extend: first(slowly(s))}}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, _ *Locks, l *Lease) {
		go func() { wantError(t, l.Extend(t.Context(), time.Minute), nil) }()
		synctest.Wait()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("Extend without a context does not panic")
				}
			}()
			var none context.Context
			_ = l.Extend(none, s) // leaves no mutex locked, and unlocks none twice
		}()
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), s/2)
		defer cancel()
		err := l.Extend(ctx, time.Hour)
		wantTook(t, begun, s/2)
		if !errors.Is(err, ErrUnavailable) || !errors.Is(err, transport.ErrRefused) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Extend returns %v", err)
		}
		redistest.Elapse(s)
		if left := l.Validity(); left > time.Minute {
			t.Errorf("the lease lasts for %v: the second Extend was done as well", left)
		}
	})
}

// If the context has ended, Extend sends nothing, although the algorithm might, and the lease goes on. The error does not
// say that Redis is unavailable. A lease that is over is no less over.
func TestExtendWithAContextThatHasEnded(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, _ *Locks, l *Lease) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := l.Extend(ctx, time.Hour)
		if !errors.Is(err, transport.ErrRefused) || !errors.Is(err, context.Canceled) {
			t.Errorf("Extend returns %v", err)
		}
		if text := "locker: extending k: nothing was sent: context canceled"; err == nil || err.Error() != text {
			t.Errorf("%v, want %q", err, text)
		}
		f.wantCalls(t, "Extend", 0)
		if left := l.Validity(); left != 9*s {
			t.Errorf("the lease lasts for %v", left)
		}
		mustUnlock(t, l)
		wantError(t, l.Extend(ctx, time.Hour), ErrExpired)
	})
}

// Extensions do not overtake one another, so the last one here is also the last one in Redis.
func TestExtendOneAfterAnother(t *testing.T) {
	running := 0
	f := fake{hooks{extend: func(c call) error {
		if running++; running > 1 {
			t.Error("two extensions at once")
		}
		defer func() { running-- }()
		return slowly(s)(c)
	}}}
	withLease(t, &f, Options{Lease: 9 * s, MaxHold: time.Hour}, func(t *testing.T, _ *Locks, l *Lease) {
		redistest.Elapse(3*s - 1) // the lease is about to be renewed
		for _, d := range []time.Duration{30 * s, 40 * s, 20 * s} {
			go func() {
				wantError(t, l.Extend(t.Context(), d), nil)
			}()
			synctest.Wait()
		}
		redistest.Elapse(4 * s)
		if here, there := l.Validity(), f.Left("k"); here+s != there {
			t.Errorf("the lease lasts for %v here and %v in Redis, want a second less here, the time of the round trip", here, there)
		}
	})
}

// A lock is renewed for as long as its holder lives, by one command every third of the lease. One timer does that
// for all leases in a list. Some leases are due one after the other. Three have ended before they are due: the
// first, the last, and one in between. One is new, and due before all others.
func TestEachLeaseIsRenewedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Locks
		var f fake
		begin := time.Now()
		leases := map[string]*Lease{}
		take := func(key string, lease time.Duration) {
			t.Helper()
			l, err := g.Lock(t.Context(), key, &f, Options{Lease: lease, MaxHold: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			leases[key] = l
			redistest.Elapse(s / 2)
		}
		take("over", 18*s)
		take("first", 18*s)
		take("over, too", 18*s)
		take("second", 18*s)
		take("short", 3*s)
		take("over as well", 18*s)
		for _, key := range []string{"over, too", "over", "over as well"} {
			mustUnlock(t, leases[key])
		}
		redistest.Elapse(7*s + s/4 - time.Since(begin))
		var got []string
		for _, c := range f.Made("Extend") {
			got = append(got, fmt.Sprint(c.Key, " ", c.At.Sub(begin), " for ", c.D))
		}
		want := []string{"short 3s for 3s", "short 4s for 3s", "short 5s for 3s", "short 6s for 3s", "first 6.5s for 18s", "short 7s for 3s"}
		if !slices.Equal(got, want) {
			t.Errorf("extended: %q, want %q", got, want)
		}
		for _, key := range []string{"first", "second", "short"} {
			redistest.Elapse(time.Minute)
			if holder := f.Holder(key); holder != leases[key].Token() {
				t.Errorf("%q has the lock of %s", holder, key)
			}
			mustUnlock(t, leases[key])
		}
		wantIdle(t, &g)
	})
}

// The timer was set for a lease that has ended, and fires for one that is due sooner.
func TestARenewalIsNotLateForAnotherThatIsOver(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: time.Hour, MaxHold: 2 * time.Hour}, func(t *testing.T, g *Locks, l *Lease) {
		mustUnlock(t, l)
		l = lock(t, g, &f, Options{Lease: 3 * s})
		redistest.Elapse(s + s/2)
		f.wantCalls(t, "Extend", 1)
		mustUnlock(t, l)
	})
}

// An alarm that has rung may wait for the lease's mutex. By then there may be nothing to do: the lock was released, or
// an Extend is under way, or has just been done. So Redis is not asked, and who has released the lock is told of no
// loss.
func TestAnAlarmThatComesLateDoesNothing(t *testing.T) {
	type situation struct {
		before   func(l *Lease)
		extended int
	}
	each(t, map[string]situation{
		"released": {func(l *Lease) { _ = l.Unlock(context.Background()) }, 0},
		"extended": {func(l *Lease) { _ = l.Extend(context.Background(), time.Hour) }, 1},
		"extending": {func(l *Lease) {
			go l.Extend(context.Background(), time.Hour)
			synctest.Wait()
		}, 1},
	}, func(t *testing.T, tt situation) {
		f := fake{hooks{extend: slowly(s)}}
		g, l := newLease(t, &f, Options{Lease: 9 * s, MaxHold: time.Hour})
		g.CancelAlarm(&l.alarm) // it has rung
		redistest.Elapse(4 * s)
		tt.before(l)
		l.Ring()
		redistest.Elapse(9 * s)
		f.wantCalls(t, "Extend", tt.extended)
		wantLost(t, l, false)
	})
}

// At MaxHold, to the moment, the lease ends: the lock is free, the holder is notified in every way, and the next
// caller in line gets its turn.
func TestRenewalStopsAtMaxHold(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: 9 * s, MaxHold: 20 * s}, func(t *testing.T, g *Locks, l *Lease) {
		ctx, cancel := context.WithCancelCause(t.Context())
		l.OnLost(cancel)
		next := make(chan *Lease, 1)
		go func() { next <- lock(t, g, &f, Options{Wait: time.Hour}) }()

		redistest.Elapse(20*s - 1)
		wantLost(t, l, false)
		f.wantHolder(t, l.Token())
		if ctx.Err() != nil || len(next) > 0 {
			t.Error("the lease ended before MaxHold")
		}
		redistest.Elapse(1)
		wantLost(t, l, true)
		if !errors.Is(context.Cause(ctx), ErrLost) || len(next) == 0 {
			t.Errorf("the context's cause is %v, and the next in line has the lock: %v", context.Cause(ctx), len(next) > 0)
		}
		wantError(t, l.Unlock(t.Context()), ErrLost)
		mustUnlock(t, <-next)
	})
}

// The last lease before MaxHold is checked at its thirds, too. So a holder that has lost the lock learns it then.
func TestALossInTheLastLease(t *testing.T) {
	for _, maxHold := range []time.Duration{9 * s, 20 * s} {
		for _, at := range []time.Duration{maxHold - 7*s, maxHold - 4*s} {
			t.Run(fmt.Sprint(at, " of ", maxHold), func(t *testing.T) {
				var f fake
				withLease(t, &f, Options{Lease: 9 * s, MaxHold: maxHold}, func(t *testing.T, _ *Locks, l *Lease) {
					redistest.Elapse(at)
					f.Put("k", NewToken(BondOf("k"), "another", time.Now()), time.Hour)
					redistest.Elapse(3 * s)
					wantLost(t, l, true)
				})
			})
		}
	}
}

// A lease is cut to end at MaxHold, but not below a millisecond, the unit in which Redis counts.
func TestRenewalMaxHoldBelowLease(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: 9 * s, MaxHold: 2500 * time.Microsecond}, func(t *testing.T, _ *Locks, l *Lease) {
		if d := f.Made("Take")[0].D; d != 3*time.Millisecond {
			t.Errorf("taken for %v", d)
		}
		redistest.Elapse(3 * time.Millisecond)
		wantLost(t, l, true)
		f.wantCalls(t, "Extend", 0)
	})
}

// Redis is unavailable for a while, and back before the lease ends: the lock is not lost.
func TestRenewalOutlastsAnOutage(t *testing.T) {
	var f fake
	f.extend = func(c call) error {
		if c.n < 7 {
			return errRefused
		}
		return c.do()
	}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, _ *Locks, l *Lease) {
		redistest.Elapse(30 * s)
		wantLost(t, l, false)
		f.wantHolder(t, l.Token())
		if n := len(f.Made("Extend")); n > 20 {
			t.Errorf("%d extensions in 30 s", n)
		}
	})
}

// Redis stays unavailable: it refuses, says nothing, or replies too late. The lock is
// lost exactly when the lease ends.
func TestRenewalGivesUpAtTheEnd(t *testing.T) {
	each(t, map[string]func(call) error{
		"refuses":     fails(errRefused),
		"says no":     func(c call) error { <-c.ctx.Done(); return errNoReply },
		"is silent":   func(call) error { pause(time.Hour); return errNoReply },
		"is too late": slowly(6 * s),
	}, func(t *testing.T, extend func(call) error) {
		f := fake{hooks{extend: extend}}
		g, l := newLease(t, &f, Options{Lease: 9 * s})
		go g.Lock(t.Context(), "k", &f, Options{Wait: time.Hour})
		redistest.Elapse(9*s - 1)
		wantLost(t, l, false)
		redistest.Elapse(1)
		wantLost(t, l, true)
		if holder := f.Holder("k"); holder == "" || holder == l.Token() {
			t.Errorf("the next in line did not get the lock, %q has it", holder)
		}
		redistest.Elapse(2 * time.Hour) // let the silent call return
	})
}

// Unlock comes while a renewal is under way. It does not wait for the renewal, whose reply no longer matters.
func TestRenewalIsOvertakenByUnlock(t *testing.T) {
	each(t, map[string]error{"extended": nil, "expired": ErrExpired, "no reply": errNoReply}, func(t *testing.T, answer error) {
		f := fake{hooks{extend: func(call) error { pause(s); return answer }}}
		_, l := newLease(t, &f, Options{Lease: 9 * s})
		redistest.Elapse(3*s + s/2)
		begin := time.Now()
		mustUnlock(t, l)
		wantTook(t, begin, 0)
		redistest.Elapse(time.Hour)
		f.wantCalls(t, "Extend", 1)
		wantLost(t, l, false)
	})
}
