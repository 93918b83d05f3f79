package locker

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

func TestLockRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for rule, o := range map[string]Options{
		"Options.Lease is -1s: it must be at least 1ms":      {Lease: -s},
		"Options.Lease is 999µs: it must be at least 1ms":    {Lease: 999 * time.Microsecond},
		"Options.Wait is -1ns: it must not be negative":      {Wait: -1},
		"Options.MaxHold is -1s: it must be at least 1ms":    {MaxHold: -s},
		"Options.MaxHold is 1µs: it must be at least 1ms":    {MaxHold: time.Microsecond},
		"Options.MaxWaiters is -1: it must not be negative":  {MaxWaiters: -1},
		"Options.Timeout is -1s: it must be at least 1ms":    {Timeout: -s},
		"Options.Timeout is 2ns: it must be at least 1ms":    {Timeout: 2},
		"Min must not be negative":                           {Backoff: Backoff{Min: -1, Max: 1}},
		"Options.Backoff is 2ns to 1ns: Min must":            {Backoff: Backoff{Min: 2, Max: 1}},
		"Options.Backoff is 1s to 0s: Min must not be negat": {Backoff: Backoff{Min: s}},
		"Options.Policy is -1: it must be Poll or LeaseEnd":  {Policy: -1},
		"Options.Policy is 2: it must be Poll or LeaseEnd":   {Policy: 2},
	} {
		var f fake
		if _, err := New(&f, o).Lock(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("%+v: error %v, want %q", o, err, rule)
		}
		if len(f.Calls()) > 0 {
			t.Errorf("%+v: Redis was asked all the same", o)
		}
		if _, err := NewSpin(nil, o).Lock(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("NewSpin with %+v: error %v, want %q", o, err, rule)
		}
	}
}

// What the documentation shows is what the engine does.
func TestDefaultsAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	o, engine := Options{}.engine().WithDefaults(), lease.Options{}.WithDefaults()
	o.Held = nil
	if want := (lease.Options{
		Lease: DefaultLease, Wait: DefaultWait, MaxHold: DefaultMaxHold, MaxWaiters: DefaultMaxWaiters,
		Timeout: DefaultTimeout, Backoff: lease.Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond},
	}); !reflect.DeepEqual(o, want) || !reflect.DeepEqual(engine, want) {
		t.Errorf("%+v, want %+v", o, want)
	}
	if NoWait != lease.NoWait || MaxKey != lease.MaxKey || Poll != Policy(lease.Poll) || LeaseEnd != Policy(lease.LeaseEnd) {
		t.Error("a constant is not that of the engine")
	}
}

// A holder relies on no more of a lease than its algorithm says.
func TestNewGoesByValid(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := lockWith(t, New(cautious{&fake{}}, Options{}))
		if v := l.Validity(); v != DefaultLease/2 {
			t.Errorf("valid for %v of %v", v, DefaultLease)
		}
		mustUnlock(t, l)
	})
}

type cautious struct{ *fake }

func (cautious) Valid(lease time.Duration) time.Duration { return lease / 2 }

func TestLockRefusesBadKeys(t *testing.T) {
	t.Parallel()
	locks := New(&fake{}, Options{})
	for _, key := range []string{"", strings.Repeat("k", MaxKey+1)} {
		_, err := locks.Lock(t.Context(), key)
		if err == nil || !strings.Contains(err.Error(), "it must have 1 to 1024") {
			t.Errorf("%d bytes: %v", len(key), err)
		}
	}
	longest := strings.Repeat("k", MaxKey)
	if _, err := locks.Lock(t.Context(), longest); err != nil {
		t.Error(err)
	}
}
