package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A holder that lives keeps its lock, by one command every third of the lease. One timer serves
// many leases: those that follow each other, those that are over meanwhile, wherever they are in the
// list, and one that is due before all others.
func TestEachLeaseIsRenewedInTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var g Group
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

// The timer was set for one that is over, and fires for one that is due sooner.
func TestARenewalIsNotLateForAnotherThatIsOver(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: time.Hour, MaxHold: 2 * time.Hour}, func(t *testing.T, g *Group, l *Lease) {
		mustUnlock(t, l)
		l = lock(t, g, &f, Options{Lease: 3 * s})
		redistest.Elapse(s + s/2)
		f.wantCalls(t, "Extend", 1)
		mustUnlock(t, l)
	})
}

// MaxHold is the end, to the moment: the lock is free, the holder is told in every way, and the next
// in line gets its turn.
func TestRenewalStopsAtMaxHold(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: 9 * s, MaxHold: 20 * s}, func(t *testing.T, g *Group, l *Lease) {
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
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Unlock of the lost lock: %v", err)
		}
		mustUnlock(t, <-next)
	})
}

// A lease is cut to end at MaxHold, but never to less than what Redis counts in.
func TestRenewalMaxHoldBelowLease(t *testing.T) {
	var f fake
	withLease(t, &f, Options{Lease: 9 * s, MaxHold: 2500 * time.Microsecond}, func(t *testing.T, _ *Group, l *Lease) {
		if d := f.Made("Take")[0].D; d != 3*time.Millisecond {
			t.Errorf("taken for %v", d)
		}
		redistest.Elapse(3 * time.Millisecond)
		wantLost(t, l, true)
		f.wantCalls(t, "Extend", 0)
	})
}

// Redis is away for a while, and back before the lease is over: no loss.
func TestRenewalOutlastsAnOutage(t *testing.T) {
	var f fake
	f.extend = func(c call) error {
		if c.n < 7 {
			return errRefused
		}
		return c.do()
	}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, _ *Group, l *Lease) {
		redistest.Elapse(30 * s)
		wantLost(t, l, false)
		f.wantHolder(t, l.Token())
		if n := len(f.Made("Extend")); n > 20 {
			t.Errorf("%d extensions in 30 s", n)
		}
	})
}

// Redis stays away, whether it refuses or says nothing, even for longer than it was asked to. The
// lease is lost when it is over: not before, and not after.
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
		redistest.Elapse(2 * time.Hour) // let the silent one return
	})
}

// Unlock comes while a renewal is on its way. It does not wait for that, and whatever it answers is
// of no importance any more.
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
