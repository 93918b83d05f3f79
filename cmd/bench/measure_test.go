package main

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

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
