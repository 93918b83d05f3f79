package plan

import (
	"math"
	"math/rand/v2"
	"time"
)

// A drawer draws at random.
type drawer struct{ *rand.Rand }

func newDrawer(seed uint64) drawer { return drawer{rand.New(rand.NewPCG(seed, 0x6c617463686b6579))} }

// chance is true with probability p.
func (d drawer) chance(p float64) bool { return d.Float64() < p }

// number returns a number from low to high.
func (d drawer) number(low, high int) int { return low + d.IntN(high-low+1) }

// within returns a time between low and high, to the nanosecond, so that no two are equal. All orders of
// magnitude are equally likely.
func (d drawer) within(low, high time.Duration) time.Duration {
	return time.Duration(float64(low) * math.Pow(float64(high)/float64(low), d.Float64()))
}

// millis is within, but in whole milliseconds, as Redis counts.
func (d drawer) millis(low, high time.Duration) time.Duration {
	return max(time.Millisecond, d.within(low, high).Truncate(time.Millisecond))
}

// below returns a time less than high, all equally likely.
func (d drawer) below(high time.Duration) time.Duration {
	return time.Duration(d.Int64N(max(1, int64(high))))
}

// A choice is a value and its weight: how often it is drawn, compared with others.
type choice[T any] struct {
	weight int
	value  T
}

func pick[T any](d drawer, from []choice[T]) T {
	sum := 0
	for _, c := range from {
		sum += c.weight
	}
	n := d.IntN(sum)
	for _, c := range from {
		if n -= c.weight; n < 0 {
			return c.value
		}
	}
	panic("unreachable")
}
