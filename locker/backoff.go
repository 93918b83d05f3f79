package locker

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// Backoff is how long to pause between tries: Min before the second try, twice
// as long before each further one, never more than Max. It is a value without
// state, so one Backoff serves any number of loops at once.
type Backoff struct {
	Min, Max time.Duration
}

// Delay returns the pause after the given try, counted from 0. random in [0, 1)
// shortens it to between half and all of its length, so that contenders that
// were turned away together do not come back together.
func (b Backoff) Delay(try int, random float64) time.Duration {
	d := b.Min
	for ; try > 0 && d < b.Max; try-- {
		d = min(2*d, b.Max)
		if d <= 0 { // Min is 0, or doubling overflowed
			d = b.Max
		}
	}
	d = min(d, b.Max)
	return d/2 + time.Duration(random*float64(d-d/2))
}

// chance returns a number in [0, 1). It comes from crypto/rand, which tests can seed, so
// that a simulation of many processes can be repeated exactly; only who waits needs it.
func chance() float64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program first
	return float64(binary.LittleEndian.Uint64(b[:])>>11) / (1 << 53)
}
