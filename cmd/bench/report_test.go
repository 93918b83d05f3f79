package main

import (
	"errors"
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
