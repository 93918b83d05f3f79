package locker

import (
	"math"
	"strings"
	"testing"
	"time"
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
		"Options.Timeout is -1s: it must not be negative":    {Timeout: -s},
		"Min must not be negative":                           {Backoff: Backoff{Min: -1, Max: 1}},
		"Options.Backoff is 2ns to 1ns: Min must":            {Backoff: Backoff{Min: 2, Max: 1}},
		"Options.Backoff is 1s to 0s: Min must not be negat": {Backoff: Backoff{Min: s}},
	} {
		var g Guard
		var f fake
		if _, err := g.Lock(t.Context(), "k", &f, o); err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("%+v: error %v, want %q", o, err, rule)
		}
		if len(f.calls) > 0 {
			t.Errorf("%+v: Redis was asked all the same", o)
		}
		if _, err := NewSpin(nil, o).Lock(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("NewSpin with %+v: error %v, want %q", o, err, rule)
		}
	}
}

func TestLockRefusesBadKeys(t *testing.T) {
	t.Parallel()
	var g Guard
	for _, key := range []string{"", strings.Repeat("k", MaxKey+1)} {
		_, err := g.Lock(t.Context(), key, &fake{}, Options{})
		if err == nil || !strings.Contains(err.Error(), "it must have 1 to 1024") {
			t.Errorf("%d bytes: %v", len(key), err)
		}
	}
	longest := strings.Repeat("k", MaxKey)
	if _, err := g.Lock(t.Context(), longest, &fake{}, Options{}); err != nil {
		t.Error(err)
	}
}

func TestOptionsDefaults(t *testing.T) {
	t.Parallel()
	want := Options{
		Lease:      10 * s,
		Wait:       10 * s,
		MaxHold:    time.Minute,
		MaxWaiters: 128,
		Backoff:    Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond},
		Timeout:    2 * s,
	}
	if got, err := (Options{}).withDefaults(); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := want.withDefaults(); got != want || err != nil {
		t.Errorf("what was set was changed: %+v, %v", got, err)
	}
	if got, _ := (Options{Lease: time.Hour}).withDefaults(); got.MaxHold != time.Hour {
		t.Errorf("MaxHold is %v for a lease of an hour", got.MaxHold)
	}
}

// Redis counts milliseconds. Were a lease cut short to them, it would end there
// before it ends here.
func TestWholeMillisRoundsUp(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for d, want := range map[time.Duration]time.Duration{
		0: 0, 1: ms, ms - 1: ms, ms: ms, ms + 1: 2 * ms, 10 * s: 10 * s,
		math.MaxInt64: math.MaxInt64 / ms * ms, // there is no more to round up to
	} {
		if got := wholeMillis(d); got != want {
			t.Errorf("wholeMillis(%v) = %v, want %v", d, got, want)
		}
	}
}
