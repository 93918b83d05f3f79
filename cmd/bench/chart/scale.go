package chart

import (
	"math"
	"strconv"
)

// A scale tells where on an axis a value is. A logarithmic one is for positive
// values only.
type scale struct {
	min, max float64
	log      bool
}

// scaleOf returns a scale that begins and ends at a tick. A linear one begins
// at 0. Values that are all 0 are as good as 1, and those that are no finite
// numbers are not looked at.
func scaleOf(values []float64, log bool) scale {
	low, high := math.Inf(1), 0.0
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		high = max(high, v)
		if v > 0 {
			low = min(low, v)
		}
	}
	if high == 0 {
		low, high = 1, 1
	}
	if log {
		s := scale{min: tenTo(math.Floor(math.Log10(low))), max: tenTo(math.Ceil(math.Log10(high))), log: true}
		if s.min == s.max {
			s.max *= 10
		}
		return s
	}
	ten := tenTo(math.Floor(math.Log10(high)))
	for _, step := range []float64{1, 2, 4, 6, 8} {
		if high <= step*ten {
			return scale{max: step * ten}
		}
	}
	return scale{max: 10 * ten}
}

// at returns where v is: 0 at the scale's beginning, 1 at its end.
func (s scale) at(v float64) float64 {
	if s.log {
		if v <= s.min {
			return 0
		}
		return math.Log(v/s.min) / math.Log(s.max/s.min)
	}
	return (v - s.min) / (s.max - s.min)
}

// ticks returns the powers of ten of a logarithmic scale, and the beginning,
// the middle and the end of a linear one.
func (s scale) ticks() []float64 {
	if !s.log {
		return []float64{s.min, (s.min + s.max) / 2, s.max}
	}
	var all []float64
	for exponent := math.Round(math.Log10(s.min)); exponent <= math.Round(math.Log10(s.max)); exponent++ {
		all = append(all, tenTo(exponent))
	}
	return all
}

// tenTo is exact, unlike math.Pow10 of a sum of logarithms.
func tenTo(exponent float64) float64 { return math.Pow10(int(exponent)) }

// Short writes two digits or more.
func Short(f float64) string {
	decimals := 0
	if f > 0 && f < 9.95 {
		decimals = max(0, 1-int(math.Floor(math.Log10(f))))
	}
	return strconv.FormatFloat(f, 'f', decimals, 64)
}

// plain writes a number that is round already. Thousands are k, since ticks are
// close to each other.
func plain(f float64) string {
	if f >= 1000 && math.Mod(f, 100) == 0 {
		return strconv.FormatFloat(f/1000, 'f', -1, 64) + "k"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
