package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func TestOutcomeTry(t *testing.T) {
	still := func() error { return fmt.Errorf("a call: %w", os.ErrDeadlineExceeded) }
	var o outcome
	for _, step := range []struct {
		do     func() error
		rounds string
	}{
		{func() error { return nil }, "0"},
		{still, "0; once it stood still"},
		{still, "0: stood still 2 times"},
	} {
		o.try(step.do)
		if got := o.rounds(); got != step.rounds {
			t.Errorf("rounds are %q: they must be %q", got, step.rounds)
		}
	}
	broken := outcome{turns: make([]turn, 3)}
	broken.try(func() error { return errors.New("it is broken") })
	if got, want := broken.rounds(), "3: it is broken"; got != want {
		t.Errorf("rounds are %q: they must be %q", got, want)
	}
}

func TestTable(t *testing.T) {
	r := resultOf(t, "hot", 2, map[string][]turn{
		app.Latchkey:    {{round: 10, perSecond: 10000, writes: 100, kept: 100}, {round: 12, perSecond: 9000, writes: 100, kept: 100}},
		app.SCS:         {{round: 20, perSecond: 5000, writes: 100, kept: 4}, {round: 20, perSecond: 5000, writes: 100, kept: 4}},
		app.Rueidislock: nil,
	})
	r.peers[2].err = errors.New("stood still 2 times")
	const want = `### hot, 2 processes

100 concurrent writes of distinct keys to one fresh session.

|  | rounds | kept | round, ms | per second | Latchkey ÷ it: round |
|---|--:|--:|--:|--:|--:|
| Latchkey | 2 | 100 % | 11.0 | 9500 |  |
| scs + goredisstore, no lock | 2 | 4.00 % | 20.0 | 5000 | **0.55** (0.50–0.60) |
| scs + rueidislock | 0: stood still 2 times | – | – | – | – |

`
	if got := r.table(); got != want {
		t.Errorf("the table is\n%s\nit must be\n%s", got, want)
	}
}

// TestFailures makes sure that a loss of Latchkey's does not go unnoticed.
func TestFailures(t *testing.T) {
	r := resultOf(t, "hot", 1, map[string][]turn{app.Latchkey: nil, app.SCS: nil})
	r.peers[1].err = errors.New("stood still")
	if err := failures([]*result{r}); err != nil {
		t.Errorf("the failure of another peer is an error: %v", err)
	}
	r.peers[0].err = errors.New("lost 1 of 100 answered writes")
	if err := failures([]*result{r}); !errors.Is(err, r.peers[0].err) {
		t.Errorf("the error is %v", err)
	}
}

func TestRatios(t *testing.T) {
	a := &outcome{turns: []turn{{number: 0, p99: 1}, {number: 1, p99: 2}, {number: 2, p99: 3}}}
	b := &outcome{turns: []turn{{number: 0, p99: 10}, {number: 2, p99: 10}}} // it stood still in between
	if got, want := ratios(a, b, tail), []float64{0.1, 0.3}; !slices.Equal(got, want) {
		t.Errorf("the ratios are %v: they must be %v", got, want)
	}
}
