package lease

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// What was asked for lasts beyond MaxHold. A shorter time does not last: the lease is renewed as
// before, until MaxHold or what was asked for beyond that.
func TestExtendLastsBeyondMaxHold(t *testing.T) {
	each(t, map[string][]time.Duration{
		"longer":           {time.Hour},
		"longer, and less": {time.Hour, s},
	}, func(t *testing.T, asked []time.Duration) {
		var f fake
		_, l := newLease(t, &f, Options{Lease: 9 * s, MaxHold: 20 * s})
		for _, d := range asked {
			if err := l.Extend(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		redistest.Elapse(time.Hour - 1)
		wantLost(t, l, false)
		f.wantHolder(t, l.Token())
		redistest.Elapse(1)
		wantLost(t, l, true)
	})
}

// An extension is at least a millisecond, and in whole ones, in which Redis counts. What was given
// back is not extended.
func TestExtendAsksForWholeMilliseconds(t *testing.T) {
	var f fake
	withLease(t, &f, Options{}, func(t *testing.T, _ *Group, l *Lease) {
		for _, d := range []time.Duration{-s, 0, time.Millisecond - 1} {
			if err := l.Extend(t.Context(), d); err == nil {
				t.Errorf("Extend by %v: no error", d)
			}
		}
		for _, d := range []time.Duration{s + 1, math.MaxInt64} {
			if err := l.Extend(t.Context(), d); err != nil {
				t.Error(err)
			}
		}
		mustUnlock(t, l)
		if err := l.Extend(t.Context(), s); !errors.Is(err, ErrExpired) {
			t.Error(err)
		}
		if made := f.Made("Extend"); len(made) != 2 || made[0].D != s+time.Millisecond || made[1].D < time.Hour {
			t.Errorf("Redis was asked for %+v", made)
		}
	})
}

// A loss is final. Extend and Unlock, whichever comes first, only tell whether another has the lock,
// and do not take it back behind the back of those who were told. Unlock says why it was lost, too.
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
		holder string // of the key, "me" for the lease itself
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
			if err := call(t, l); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		}
		mustUnlock(t, l) // again, which does nothing
		if holder := f.Holder("k"); holder == l.Token() || tt.want == ErrLost && holder != "another" {
			t.Errorf("the lock holds %q", holder)
		}
	})
}

// Redis does not answer to Extend, or refuses. That is no loss yet: there is the rest of the lease
// to get through. An extension that shortens the lease may have been done without an answer, so the
// holder must reckon with it. One that Redis refused changes nothing.
func TestExtendInDoubt(t *testing.T) {
	type situation struct {
		by     time.Duration
		extend func(call) error
		valid  time.Duration // from then on
		lasts  time.Duration // until it is lost
	}
	each(t, map[string]situation{
		"for longer":            {time.Hour, first(lands(errNoReply, 0)), 9 * s, time.Minute},
		"for longer, refused":   {time.Hour, first(fails(errRefused)), 9 * s, time.Minute},
		"for less":              {s, first(lands(errNoReply, 0)), s, time.Minute},
		"for less, and no more": {s, func(c call) error { return []error{lands(errNoReply, 0)(c), errRefused}[min(c.n-1, 1)] }, s, s},
		"for less, refused":     {s, fails(errRefused), 9 * s, 9 * s},
	}, func(t *testing.T, tt situation) {
		f := fake{hooks{extend: tt.extend}}
		_, l := newLease(t, &f, Options{Lease: 9 * s})
		if err := l.Extend(t.Context(), tt.by); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Extend: %v", err)
		}
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

// The lease ends while Extend waits for Redis. The holder is told then, and not when the answer
// comes; and an answer that comes too late does not count.
func TestExtendTakesTooLong(t *testing.T) {
	var f fake
	f.extend = func(c call) error {
		pause(time.Minute)
		f.Put("k", f.Made("Take")[0].Token, s) // so that Redis says yes
		return c.do()
	}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, g *Group, l *Lease) {
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(t.Context(), time.Hour) }()
		redistest.Elapse(9 * s)
		wantLost(t, l, true)
		wantIdle(t, g)
		if err := <-extended; !errors.Is(err, ErrExpired) {
			t.Errorf("Extend: %v", err)
		}
		f.wantHolder(t, "")
	})
}

// Redis is not waited for longer than the lease lasts.
func TestExtendAsksWithinTheLease(t *testing.T) {
	f := fake{hooks{extend: func(c call) error { <-c.ctx.Done(); return errNoReply }}}
	withLease(t, &f, Options{Lease: 9 * s}, func(t *testing.T, _ *Group, l *Lease) {
		begin := time.Now()
		if err := l.Extend(context.Background(), s); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		wantTook(t, begin, 9*s)
		synctest.Wait()
		wantLost(t, l, true)
	})
}

// Extensions do not overtake one another, so the same one is the last here and in Redis.
func TestExtendOneAfterAnother(t *testing.T) {
	running := 0
	f := fake{hooks{extend: func(c call) error {
		if running++; running > 1 {
			t.Error("two extensions at once")
		}
		defer func() { running-- }()
		return slowly(s)(c)
	}}}
	withLease(t, &f, Options{Lease: 9 * s, MaxHold: time.Hour}, func(t *testing.T, _ *Group, l *Lease) {
		redistest.Elapse(3*s - 1) // the lease is about to be renewed
		for _, d := range []time.Duration{30 * s, 40 * s, 20 * s} {
			go func() {
				if err := l.Extend(t.Context(), d); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		redistest.Elapse(4 * s)
		if here, there := l.Validity(), f.Left("k"); here+s != there {
			t.Errorf("the lease lasts for %v here, and for %v in Redis, which was asked a second before", here, there)
		}
	})
}
