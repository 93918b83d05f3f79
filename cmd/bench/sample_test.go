package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func TestNewSample(t *testing.T) {
	seen := tally{
		took: 100, rounds: []float64{40, 60}, latencies: []float64{4, 1, 3, 2},
		requests: 4, late: 1, writes: 4, kept: 3, unfair: 1.5,
	}
	before := look{
		app:   app.Stats{CPU: time.Second, Mallocs: 1000},
		redis: cost{cpu: time.Second, reads: 10, commands: map[string]int{"get": 5}},
	}
	after := look{
		app:   app.Stats{CPU: time.Second + 400*time.Microsecond, Mallocs: 1800},
		redis: cost{cpu: time.Second + 80*time.Microsecond, reads: 17, commands: map[string]int{"get": 9, "set": 2}}, // one read was for this look
	}
	want := sample{
		round: 7, crowd: 50, perSecond: 30, p50: 2, p99: 4, max: 4, unfair: 1.5,
		writes: 4, kept: 3,
		redisCPU: 20, appCPU: 100, mallocs: 200, roundTrips: 1.5,
		commands: map[string]float64{"get": 1, "set": 0.5},
	}
	got := newSample(7, seen, before, after)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the sample is\n%+v: it must be\n%+v", got, want)
	}
	if n := got.allCommands(); n != 1.5 {
		t.Errorf("there are %v commands: it must be 1.5", n)
	}
}

func TestRatios(t *testing.T) {
	a := &outcome{samples: []sample{{round: 0, p99: 1}, {round: 1, p99: 2}, {round: 2, p99: 3}}}
	b := &outcome{samples: []sample{{round: 0, p99: 10}, {round: 2, p99: 10}}} // it stalled in between
	if got, want := ratios(a, b, tail), []float64{0.1, 0.3}; !slices.Equal(got, want) {
		t.Errorf("the ratios are %v: they must be %v", got, want)
	}
}

func TestQuantile(t *testing.T) {
	numbers := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.5: 2, 0.51: 3, 1: 4} {
		if got := quantile(numbers, q); got != want {
			t.Errorf("quantile %v is %v: it must be %v", q, got, want)
		}
	}
	if numbers[0] != 4 {
		t.Error("quantile has changed the order of its numbers")
	}
}

// TestLikely has ranks that can be looked up in tables of the sign test.
func TestLikely(t *testing.T) {
	for _, tt := range []struct{ n, low, high float64 }{
		{1, 1, 1}, {5, 1, 5}, {7, 1, 7}, {8, 1, 8}, {9, 2, 8}, {12, 3, 10}, {25, 8, 18}, {30, 10, 21}, {50, 18, 33}, {60, 22, 39},
	} {
		var numbers []float64
		for i := tt.n; i > 0; i-- {
			numbers = append(numbers, i)
		}
		if low, high := likely(numbers); low != tt.low || high != tt.high {
			t.Errorf("of %v numbers: %v to %v: it must be %v to %v", tt.n, low, high, tt.low, tt.high)
		}
	}
}

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

func TestOutcomeTry(t *testing.T) {
	still := func() error { return fmt.Errorf("a call: %w", os.ErrDeadlineExceeded) }
	var o outcome
	for _, step := range []struct {
		do     func() error
		rounds string
	}{
		{func() error { return nil }, "0"},
		{still, "0; stalled once"},
		{still, "0: stalled 2 times"},
	} {
		o.try(step.do)
		if got := o.rounds(); got != step.rounds {
			t.Errorf("rounds are %q: they must be %q", got, step.rounds)
		}
	}
	o.try(func() error { return errors.New("it is broken") })
	if got, want := o.rounds(), "0: it is broken"; got != want {
		t.Errorf("rounds are %q: they must be %q", got, want)
	}
}
