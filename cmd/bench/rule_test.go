package main

import (
	"math"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// resultOf returns a cell in which each of some peers has shown some turns.
func resultOf(t *testing.T, workload string, n int, shown map[string][]turn) *result {
	t.Helper()
	for _, w := range workloads() {
		if w.name != workload {
			continue
		}
		r := &result{cell: cell{w, n}}
		for _, p := range app.Peers() {
			if turns, ok := shown[p.Name]; ok {
				for i := range turns {
					turns[i].number = i
				}
				r.peers = append(r.peers, &outcome{peer: p, turns: turns})
			}
		}
		return r
	}
	t.Fatalf("there is no workload %q", workload)
	return nil
}

func TestJudge(t *testing.T) {
	kept := func(round float64) turn { return turn{round: round, writes: 100, kept: 100} }
	results := []*result{
		resultOf(t, "hot", 1, map[string][]turn{
			app.Latchkey:    {kept(5), kept(6), kept(70)},
			app.SCS:         {kept(10), kept(10), kept(10)},
			app.Rueidislock: {kept(30), kept(20)},
			"redsync":       {kept(500)},
		}),
		resultOf(t, "hot", 4, map[string][]turn{
			app.Latchkey: {{round: 10, writes: 100, kept: 100}, {round: 10, writes: 1000000, kept: 999999}},
			app.SCS:      nil, // it stood still
		}),
		resultOf(t, "slow", 2, map[string][]turn{app.Latchkey: {{round: 560, handler: 5.5}}}),
		resultOf(t, "crowd", 4, map[string][]turn{app.Latchkey: {{unfair: math.Inf(1), commands: map[string]float64{"get": 1, "set": 1.5}}}}),
		resultOf(t, "lock", 4, map[string][]turn{app.Latchkey: {{p99: 10}}, app.Rueidislock: {{p99: 40}}}),
	}
	var rows []string
	for _, v := range judge(results) {
		rows = append(rows, strings.Join(v.row(), " | "))
	}
	want := []string{
		"hot, 1 process: round ÷ scs without a lock | **0.60** (0.50–7.00) | ≤ 0.6 | yes",
		"hot, 4 processes: round ÷ scs without a lock | not measured | ≤ 1 | –",
		"hot, 1 process: kept, % | **100** | ≥ 100 | yes",
		"hot, 4 processes: kept, % | **99.9** | ≥ 100 | **no**",
		"hot, 1 process: round ÷ best locking peer's, scs + rueidislock | **0.23** (0.17–0.30) | ≤ 0.15 | **no**",
		"slow, 2 processes: round ÷ (100 × 5 ms) | **1.12** | ≤ 1.1 | **no**",
		"slow, 2 processes: round ÷ (100 × time in the handler) | **1.02** | ≤ 1.1 | yes",
		"crowd, 4 processes: Redis commands per request | **2.50** | ≤ 3 | yes",
		"crowd, 4 processes: most ÷ least of the processes | **∞** | ≤ 1.3 | **no**",
		"crowd, 4 processes: kept, % | not measured | ≥ 100 | –",
		"lock, 4 processes: 99 % ÷ rueidislock's | **0.25** | ≤ 0.3 | yes",
	}
	if got := strings.Join(rows, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the verdicts are\n%s\nthey must be\n%s", got, strings.Join(want, "\n"))
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
		{atMost(0.6), math.Inf(1), false},
		{atMost(0.6), math.NaN(), false},
		{atLeast(1.1), 1.1, true},
		{atLeast(1.1), 1.099, false},
		{atLeast(1.1), math.NaN(), false},
		{atLeast(100), percentage(1), true},
		{atLeast(100), percentage(0.999999), false},
	} {
		if got := tt.limit.met(tt.value); got != tt.met {
			t.Errorf("%v is met by %v: %v, it must be %v", tt.limit, tt.value, got, tt.met)
		}
	}
}
