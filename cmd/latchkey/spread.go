package main

import (
	"math/bits"
	"slices"
)

// A spread counts how numbers are distributed. It takes little memory for any number of numbers, and knows
// each to one part in 64.
type spread struct {
	counts   map[int64]int64 // by the number without its lower bits
	n, total int64
	largest  int64
}

func (s *spread) add(v int64) {
	if s.counts == nil {
		s.counts = make(map[int64]int64)
	}
	v = max(v, 0)
	cut := max(0, bits.Len64(uint64(v))-7)
	s.counts[v>>cut<<cut]++
	s.n++
	s.total += v
	s.largest = max(s.largest, v)
}

// merge adds all numbers of another spread.
func (s *spread) merge(other *spread) {
	if s.counts == nil {
		s.counts = make(map[int64]int64)
	}
	for v, n := range other.counts {
		s.counts[v] += n
	}
	s.n += other.n
	s.total += other.total
	s.largest = max(s.largest, other.largest)
}

// at returns the number below which a fraction of the numbers lies, or 0 if there are none.
func (s *spread) at(fraction float64) int64 {
	var values []int64
	for v := range s.counts {
		values = append(values, v)
	}
	slices.Sort(values)
	left := int64(fraction * float64(s.n))
	for _, v := range values {
		if left -= s.counts[v]; left < 0 {
			return v
		}
	}
	return s.largest
}
