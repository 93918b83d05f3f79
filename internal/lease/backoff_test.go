package lease

import (
	"math"
	"testing"
	"time"
)

// almostOne is the largest random number below 1.
var almostOne = math.Nextafter(1, 0)

func TestBackoffDoublesUpToMax(t *testing.T) {
	t.Parallel()
	b := Backoff{Min: time.Millisecond, Max: 12 * time.Millisecond}
	for try, want := range []time.Duration{1, 2, 4, 8, 12, 12, 12} {
		want *= time.Millisecond
		if got := b.Delay(try, almostOne); got > want || got < want-time.Microsecond {
			t.Errorf("try %d: longest pause %v, want %v", try, got, want)
		}
	}
}

func TestBackoffJitterIsHalfToWhole(t *testing.T) {
	t.Parallel()
	b := Backoff{Min: 100, Max: 100}
	for random, want := range map[float64]time.Duration{0: 50, 0.5: 75, almostOne: 99} {
		if got := b.Delay(3, random); got != want {
			t.Errorf("random %v: pause %v of at most 100ns, want %v", random, got, want)
		}
	}
}

// No number of tries and no Backoff makes a pause negative or longer than Max.
func TestBackoffStaysInBounds(t *testing.T) {
	t.Parallel()
	for _, b := range []Backoff{
		{},
		{Max: time.Second}, // Min 0: the second try comes at once, the others after Max
		{Min: 1, Max: math.MaxInt64},
		{Min: 3, Max: math.MaxInt64}, // doubling overflows before it meets Max
		{Min: math.MaxInt64, Max: math.MaxInt64},
		{Min: time.Millisecond, Max: 16 * time.Millisecond},
	} {
		previous := time.Duration(0)
		for _, try := range []int{0, 1, 2, 10, 61, 62, 63, 64, 100, math.MaxInt} {
			least, most := b.Delay(try, 0), b.Delay(try, almostOne)
			if least < b.Min/2 || least > most || most > b.Max {
				t.Errorf("%+v, try %d: pause %v to %v", b, try, least, most)
			}
			if least < previous {
				t.Errorf("%+v, try %d: pause %v, shorter than the one before", b, try, least)
			}
			previous = least
		}
		if last := b.Delay(math.MaxInt, 0); last != b.Max/2 {
			t.Errorf("%+v: the pause ends at %v, want %v", b, last, b.Max/2)
		}
	}
}

// Options refuse such a Backoff; by itself it keeps to Max.
func TestBackoffMaxBelowMin(t *testing.T) {
	t.Parallel()
	b := Backoff{Min: time.Minute, Max: time.Second}
	if got := b.Delay(0, almostOne); got > b.Max {
		t.Errorf("pause %v", got)
	}
}

func TestBackoffWithoutMin(t *testing.T) {
	t.Parallel()
	b := Backoff{Max: time.Second}
	if got := b.Delay(0, almostOne); got != 0 {
		t.Errorf("first pause %v, want none", got)
	}
	if got := b.Delay(1, 0); got != time.Second/2 {
		t.Errorf("second pause at least %v, want half of Max", got)
	}
}
