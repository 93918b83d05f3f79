package main

import (
	"math"
	"slices"
	"testing"
)

func TestUnfairness(t *testing.T) {
	for _, tt := range []struct {
		name  string
		order []int
		n     int
		want  float64
	}{
		{"taking turns", []int{0, 1, 0, 1, 0, 1}, 2, 1.5}, // 3 to 2, when process 0 is through
		{"one after the other", []int{0, 0, 0, 1, 1, 1}, 2, math.Inf(1)},
		{"what comes after does not count", []int{0, 0, 1, 0, 1, 1}, 2, 3},
		{"alone", []int{0, 0}, 1, 1},
	} {
		if got := unfairness(tt.order, tt.n); got != tt.want {
			t.Errorf("%s: %v: it must be %v", tt.name, got, tt.want)
		}
	}
}

func TestOwners(t *testing.T) {
	// Client 0 was served last, and clients 0 and 2 are those of process 0.
	if got, want := owners([]int{5, 2, 3, 4}, 2), []int{1, 0, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("the owners are %v: they must be %v", got, want)
	}
}
