package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// TestTakesPart makes sure that what limits are about is not measured less when
// time is short.
func TestTakesPart(t *testing.T) {
	for _, p := range app.Peers() {
		o := outcome{peer: contender{Peer: p}}
		must := slices.Contains([]string{app.Latchkey, app.SCS, app.Floor}, p.Name)
		for round, want := range []bool{true, must, must, true} {
			if got := o.takesPart(round, time.Second); got != want {
				t.Errorf("%s takes part in round %d: %v, it must be %v", p.Name, round, got, want)
			}
		}
		o.spent = time.Second
		if got := o.takesPart(0, time.Second); got != must {
			t.Errorf("%s takes part when its time is over: %v, it must be %v", p.Name, got, must)
		}
		o.err = errors.New("it is broken")
		if o.takesPart(0, time.Second) {
			t.Errorf("%s takes part after it has failed", p.Name)
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
