package main

import (
	"math"
	"slices"
)

// unfairness returns how many times as many requests the luckiest of n processes
// has served as the unluckiest, as long as all of them had some left. The order
// has the process of each request, and each process has as many as the others.
func unfairness(order []int, n int) float64 {
	served := make([]int, n)
	for _, p := range order {
		served[p]++
		if served[p] == len(order)/n {
			break
		}
	}
	return mostToLeast(served)
}

// mostToLeast is infinite where there is a zero.
func mostToLeast(counts []int) float64 {
	least := slices.Min(counts)
	if least == 0 {
		return math.Inf(1)
	}
	return float64(slices.Max(counts)) / float64(least)
}
