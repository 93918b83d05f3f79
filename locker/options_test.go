package locker

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// A Locker refuses these options, besides the options that all kinds of locks refuse: see lockertest.
func TestLockRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for rule, o := range map[string]Options{
		"Options.Lease is 999µs: it must be at least 1ms":    {Lease: 999 * time.Microsecond},
		"Options.MaxHold is 1µs: it must be at least 1ms":    {MaxHold: time.Microsecond},
		"Options.Timeout is 2ns: it must be at least 1ms":    {Timeout: 2},
		"Min must not be negative":                           {Backoff: Backoff{Min: -1, Max: 1}},
		"Options.Backoff is 2ns to 1ns: Min must":            {Backoff: Backoff{Min: 2, Max: 1}},
		"Options.Backoff is 1s to 0s: Min must not be negat": {Backoff: Backoff{Min: s}},
		"Options.Policy is -1: it must be Poll or LeaseEnd":  {Policy: -1},
		"Options.Policy is 2: it must be Poll or LeaseEnd":   {Policy: 2},
	} {
		for kind, lock := range map[string]Locker{"New": New(&fake{}, o), "NewSpin": NewSpin(nil, o), "NewTimestamp": NewTimestamp(nil, o)} {
			if _, err := lock.Lock(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), rule) {
				t.Errorf("%s with %+v: error %v, want %q", kind, o, err, rule)
			}
		}
	}
}

// A nil argument is a mistake of the program, so the error does not say that Redis is unavailable.
func TestLockRefusesNil(t *testing.T) {
	t.Parallel()
	for want, lock := range map[string]Locker{
		"locker: the pool is nil":                         NewSpin(nil, Options{}),
		"locker: the pool is nil ":                        NewTimestamp(nil, Options{}),
		"locker: New: the Algorithm is nil":               New(nil, Options{}),
		"locker: the Client of SpinAlgorithm is nil":      New(SpinAlgorithm(nil), Options{}),
		"locker: the Client of TimestampAlgorithm is nil": New(TimestampAlgorithm(nil), Options{Timeout: s}),
	} {
		_, err := lock.Lock(t.Context(), "k")
		if err == nil || err.Error() != strings.TrimSpace(want) || errors.Is(err, ErrUnavailable) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The documented defaults are those of the engine.
func TestDefaultsAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	o, engine := Options{}.engine().WithDefaults(), lease.Options{}.WithDefaults()
	if want := (lease.Options{
		Lease: 10 * time.Second, Wait: 10 * time.Second, MaxHold: time.Minute, MaxWaiters: 128,
		Timeout: DefaultTimeout, Backoff: lease.Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond}, Span: 10 * time.Second,
	}); !reflect.DeepEqual(o, want) || !reflect.DeepEqual(engine, want) {
		t.Errorf("%+v, want %+v", o, want)
	}
	if NoWait != lease.NoWait || MaxKey != lease.MaxKey || Poll != Policy(lease.Poll) || LeaseEnd != Policy(lease.LeaseEnd) {
		t.Error("a constant is not that of the engine")
	}
}

// A holder relies on no more of a lease than Algorithm.Valid returns.
func TestNewGoesByValid(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := mustLock(t, New(cautious{&fake{}}, Options{}))
		if v := l.Validity(); v != 5*time.Second {
			t.Errorf("valid for %v of 10s", v)
		}
		mustUnlock(t, l)
	})
}

type cautious struct{ *fake }

func (cautious) Valid(lease time.Duration) time.Duration { return lease / 2 }

// The label of one lock has precedence over that of all locks.
func TestLabelOfOneOrAll(t *testing.T) {
	t.Parallel()
	var f fake
	locks := New(&f, Options{Label: "all"})
	for label, want := range map[string]string{"": "all", "one": "one"} {
		l, err := locks.Lock(WithLabel(t.Context(), label), "k")
		if err != nil {
			t.Fatal(err)
		}
		if token := f.Holder("k"); !strings.HasSuffix(token, " "+want) {
			t.Errorf("with the label %q: the token is %q", label, token)
		}
		mustUnlock(t, l)
	}
}
