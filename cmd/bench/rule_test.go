package main

import (
	"math"
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func TestMustHold(t *testing.T) {
	kept := func(round float64) sample { return sample{crowd: round, writes: 100, kept: 100} }
	results := []*result{
		resultOf(t, "hot", 1, map[string][]sample{
			app.Latchkey: {kept(5), kept(6), kept(70)},
			app.SCS:      {kept(10), kept(10), kept(10)},
			"redsync":    {kept(500)},
		}),
		resultOf(t, "hot", 4, map[string][]sample{
			app.Latchkey: {{crowd: 10, writes: 100, kept: 100}, {crowd: 10, writes: 1000000, kept: 999999}},
			app.SCS:      nil, // it has stalled
		}),
		resultOf(t, "spread", 1, nil),
		resultOf(t, "crowd", 4, map[string][]sample{app.Latchkey: {{unfair: math.Inf(1), commands: map[string]float64{"get": 1, "set": 1.5}}}}),
	}
	const want = `|  | median (range of the rounds) | limit | met |
|---|--:|--:|--:|
| hot, 1 process: round | **0.60** (0.50–7.00) | ≤ 0.48 | **no** |
| hot, 4 processes: kept, % | **99.9** | ≥ 100 | **no** |
| hot, 1 process: kept, % | **100** | ≥ 100 | yes |
| hot, 4 processes: round | not measured | ≤ 0.75 | – |
| crowd, 4 processes: commands | **2.50** | ≤ 3 | yes |
| crowd, 4 processes: most ÷ least | **∞** | ≤ 1.3 | **no** |
`
	if got := mustHold([]rule{
		{"hot", []int{1}, "round", atMost(0.48), versus(app.SCS, roundTime)},
		{"hot", []int{4}, "kept, %", atLeast(100), keptShare},
		{"hot", []int{1, 2}, "kept, %", atLeast(100), keptShare},
		{"hot", []int{4}, "round", atMost(0.75), versus(app.SCS, roundTime)},
		{"crowd", nil, "commands", atMost(3), our(commands)},
		{"crowd", nil, "most ÷ least", atMost(1.3), our(unevenness)},
	}, results); got != want {
		t.Errorf("the verdicts are\n%s\nthey must be\n%s", got, want)
	}
}

func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		limit limit
		value float64
		met   bool
	}{
		{atMost(0.6), 0.6, true},
		{atMost(0.6), 0.604, true}, // is shown as 0.60
		{atMost(0.6), 0.606, false},
		{atMost(315), 315.4, true},
		{atMost(0.6), math.Inf(1), false},
		{atMost(0.6), math.NaN(), false},
		{atLeast(1.1), 1.099, false},
		{atLeast(100), percentage(1), true},
		{atLeast(100), percentage(0.999999), false},
	} {
		if got := tt.limit.met(tt.value); got != tt.met {
			t.Errorf("%v is met by %v: %v, it must be %v", tt.limit, tt.value, got, tt.met)
		}
	}
}
