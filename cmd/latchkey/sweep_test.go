package main

import (
	"testing"
	"time"
)

// A busy Redis gets longer pauses. But after a stall a sweep goes on at once: it does not pause for twice as long as
// Redis was silent.
func TestRest(t *testing.T) {
	t.Parallel()
	for batch, want := range map[time.Duration]time.Duration{
		time.Millisecond: 2 * time.Millisecond, 40 * time.Millisecond: 80 * time.Millisecond, 2 * time.Second: 200 * time.Millisecond,
	} {
		if got := rest(batch); got != want {
			t.Errorf("after %v it pauses for %v, not %v", batch, got, want)
		}
	}
}
