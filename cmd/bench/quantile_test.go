package main

import "testing"

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 down to 1
	}
	for _, tt := range []struct {
		name    string
		numbers []float64
		q, want float64
	}{
		{"one", []float64{7}, 0.99, 7},
		{"none of them", hundred, 0, 1},
		{"median", hundred, 0.5, 50},
		{"all but one", hundred, 0.99, 99},
		{"all", hundred, 1, 100},
		{"between ranks", []float64{3, 1, 2}, 0.5, 2},
	} {
		if got := quantile(tt.numbers, tt.q); got != tt.want {
			t.Errorf("%s: quantile %v is %v: it must be %v", tt.name, tt.q, got, tt.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("quantile has changed the order of its numbers")
	}
}
