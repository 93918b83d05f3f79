package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// resultOf returns a cell in which each of some peers has shown some samples.
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

func TestMustHold(t *testing.T) {
	kept := func(round float64) sample { return sample{crowd: round, writes: 100, kept: 100} }
	results := []*result{
		resultOf(t, "hot", 1, map[string][]sample{
			app.Latchkey:    {kept(5), kept(6), kept(70)},
			app.SCS:         {kept(10), kept(10), kept(10)},
			app.Rueidislock: {kept(30), kept(20)},
			"redsync":       {kept(500)},
		}),
		resultOf(t, "hot", 4, map[string][]sample{
			app.Latchkey: {{crowd: 10, writes: 100, kept: 100}, {crowd: 10, writes: 1000000, kept: 999999}},
			app.SCS:      nil, // it has stalled
		}),
		resultOf(t, "slow", 2, map[string][]sample{app.Latchkey: {{crowd: 560}}}),
		resultOf(t, "crowd", 4, map[string][]sample{app.Latchkey: {{unfair: math.Inf(1), commands: map[string]float64{"get": 1, "set": 1.5}}}}),
		resultOf(t, "lock", 4, map[string][]sample{app.Latchkey: {{p99: 10}}, app.Rueidislock: {{p99: 40}}}),
	}
	const want = `|  | median (range of the rounds) | limit | met |
|---|--:|--:|--:|
| hot, 1 process: round ÷ scs without a lock | **0.60** (0.50–7.00) | ≤ 0.6 | yes |
| hot, 4 processes: round ÷ scs without a lock | not measured | ≤ 1 | – |
| hot, 1 process: kept, % | **100** | ≥ 100 | yes |
| hot, 4 processes: kept, % | **99.9** | ≥ 100 | **no** |
| hot, 1 process: round ÷ rueidislock's | **0.23** (0.17–0.30) | ≤ 0.15 | **no** |
| slow, 2 processes: round ÷ (100 × 5 ms) | **1.12** | ≤ 1.1 | **no** |
| crowd, 4 processes: Redis commands per request | **2.50** | ≤ 3 | yes |
| crowd, 4 processes: most ÷ least of the processes | **∞** | ≤ 1.3 | **no** |
| crowd, 4 processes: kept, % | not measured | ≥ 100 | – |
| lock, 4 processes: 99 % ÷ rueidislock's | **0.25** | ≤ 0.3 | yes |
`
	if got := mustHold(results); got != want {
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
	broken := outcome{samples: make([]sample, 3)}
	broken.try(func() error { return errors.New("it is broken") })
	if got, want := broken.rounds(), "3: it is broken"; got != want {
		t.Errorf("rounds are %q: they must be %q", got, want)
	}
}

func TestTable(t *testing.T) {
	r := resultOf(t, "hot", 2, map[string][]sample{
		app.Latchkey:    {{crowd: 10, perSecond: 10000, writes: 100, kept: 100}, {crowd: 12, perSecond: 9000, writes: 100, kept: 100}},
		app.SCS:         {{crowd: 20, perSecond: 5000, writes: 100, kept: 4}, {crowd: 20, perSecond: 5000, writes: 100, kept: 4}},
		app.Rueidislock: nil,
	})
	r.peers[2].err = errors.New("stalled 2 times")
	const want = `### hot, 2 processes

100 concurrent writes of distinct keys to one fresh session.

|  | rounds | kept | round, ms | per second | Latchkey ÷ it: round |
|---|--:|--:|--:|--:|--:|
| Latchkey | 2 | 100 % | 11.0 | 9500 |  |
| scs + goredisstore, no lock | 2 | 4.00 % | 20.0 | 5000 | **0.55** (0.50–0.60) |
| scs + rueidislock | 0: stalled 2 times | – | – | – | – |

`
	if got := r.table(); got != want {
		t.Errorf("the table is\n%s\nit must be\n%s", got, want)
	}
}

// TestFailures makes sure that a loss of Latchkey's does not go unnoticed.
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
