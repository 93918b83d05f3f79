package main

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// resultOf returns a cell with samples of some peers.
func resultOf(t *testing.T, workload string, n int, shown map[string][]sample) *result {
	t.Helper()
	for _, w := range workloads() {
		if w.name != workload {
			continue
		}
		r := &result{cell: cell{w, n}}
		for _, p := range app.Peers() {
			if samples, ok := shown[p.Name]; ok {
				for i := range samples {
					samples[i].round = i
				}
				r.peers = append(r.peers, &outcome{peer: contender{Peer: p}, samples: samples})
			}
		}
		return r
	}
	t.Fatalf("there is no workload %q", workload)
	return nil
}

// TestFailures makes sure that a loss by Latchkey does not go unnoticed.
func TestFailures(t *testing.T) {
	r := resultOf(t, "hot", 1, map[string][]sample{app.Latchkey: nil, app.SCS: nil})
	r.peers[1].err = errors.New("stalled")
	if err := (&report{results: []*result{r}}).failures(); err != nil {
		t.Errorf("the failure of another peer is an error: %v", err)
	}
	r.peers[0].err = errors.New("lost 1 of 100 answered writes")
	if err := (&report{results: []*result{r}}).failures(); !errors.Is(err, r.peers[0].err) {
		t.Errorf("the error is %v", err)
	}
}

func TestComparison(t *testing.T) {
	r := resultOf(t, "spread", 1, nil)
	for _, factor := range []float64{0.9, 1} { // of the throughput; this tree is slower and takes less CPU
		o := new(outcome)
		for i := range 9 {
			noise := 1 + 0.01*float64(i)*factor
			o.samples = append(o.samples, sample{
				round: i, perSecond: 1000 * factor * noise, p50: 2 * noise, p99: 5, appCPU: 40 * factor, redisCPU: 10, mallocs: 50, roundTrips: 1,
			})
		}
		r.peers = append(r.peers, o)
	}
	const want = `| new ÷ old | per second | median | 99 % | app | Redis | allocations | round trips |
|---|--:|--:|--:|--:|--:|--:|--:|
| spread, 1 process | **0.90 (0.89–0.90)** | 1.00 (0.99–1.00) | 1.00 (1.00–1.00) | 0.90 (0.90–0.90) | 1.00 (1.00–1.00) | 1.00 (1.00–1.00) | 1.00 (1.00–1.00) |
`
	if got := comparison([]*result{r}); got != want {
		t.Errorf("the comparison is\n%s\nit must be\n%s", got, want)
	}
}

// A table has a row for each peer. A peer that has stalled has no figures. What a peer adds to the floor is
// computed within each round, and the table does not show that the floor loses writes.
func TestTable(t *testing.T) {
	hot := resultOf(t, "hot", 2, map[string][]sample{
		app.Latchkey:    {{crowd: 10, perSecond: 10000, writes: 100, kept: 100}, {crowd: 12, perSecond: 9000, writes: 100, kept: 100}},
		app.SCS:         {{crowd: 20, perSecond: 5000, writes: 100, kept: 4}, {crowd: 20, perSecond: 5000, writes: 100, kept: 4}},
		app.Rueidislock: nil,
	})
	hot.peers[2].err = errors.New("stalled 2 times")
	lone := resultOf(t, "lone", 1, map[string][]sample{
		app.Latchkey: {{p50: 3, appCPU: 40, redisCPU: 20, writes: 9, kept: 9}, {p50: 6, appCPU: 80, redisCPU: 40, writes: 9, kept: 9}},
		"gorilla":    nil,
		app.Floor:    {{p50: 1, appCPU: 10, writes: 9, kept: 3}, {p50: 2, appCPU: 20, writes: 9, kept: 3}},
	})
	for _, tt := range []struct {
		*result
		rows string
	}{
		{hot, `|  | rounds | kept | round, ms | per second | Latchkey ÷ peer: round |
|---|--:|--:|--:|--:|--:|
| Latchkey | 2 | 100 % | 11.0 | 9500 |  |
| scs + goredisstore, no lock | 2 | 4.00 % | 20.0 | 5000 | **0.55** (0.50–0.60) |
| scs + rueidislock | 0: stalled 2 times | – | – | – | – |`},
		{lone, `|  | rounds | kept | median, ms | Redis, µs | app, µs | added, ms | added CPU, µs | Latchkey ÷ peer: median |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
| Latchkey | 2 | 100 % | 4.50 | 30.0 | 60.0 | 3.00 | 75.0 |  |
| gorilla + redistore, no lock | 0 | – | – | – | – | – | – | – |
| no sessions: the floor | 2 | – | 1.50 | – | 15.0 |  |  | **3.00** (3.00–3.00) |`},
	} {
		if got := tt.table(); !strings.Contains(got, tt.rows) {
			t.Errorf("the table is\n%s\nits rows must be\n%s", got, tt.rows)
		}
	}
}

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
	}, results, ofRounds); got != want {
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
		{atMost(0.6), 0.604, true}, // shown as 0.60
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
