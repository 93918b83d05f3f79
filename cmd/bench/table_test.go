package main

import (
	"math"
	"testing"
)

func TestNumber(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.00", 0.00031: "0.00031", 0.0949: "0.095", 0.1: "0.10", 1: "1.00", 9.999: "10.00",
		12.34: "12.3", 100: "100", 15485.6: "15486", math.Inf(1): "∞",
	} {
		if got := number(f); got != want {
			t.Errorf("%v is %q: it must be %q", f, got, want)
		}
	}
}
