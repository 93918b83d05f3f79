package lease

import (
	"math"
	"reflect"
	"testing"
	"time"
)

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
	if got := (Options{}).WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := want.WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("what was set was changed: %+v", got)
	}
	if got := (Options{Lease: time.Hour}).WithDefaults(); got.MaxHold != time.Hour {
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
