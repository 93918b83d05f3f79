package main

import (
	"math"
	"slices"
)

// quantile returns the smallest of some numbers that a share of q of them does
// not exceed: 0.5 is the median, 0.99 is what all but one in a hundred reach.
// There must be at least one number.
func quantile(numbers []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the middle of some numbers, which are at least one.
func median(numbers []float64) float64 {
	sorted := slices.Sorted(slices.Values(numbers))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
