package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A trial is a defect and one of the suites that must find it.
type trial struct {
	defect defect
	suite  suite

	done chan struct{} // closed when the other fields are set
	finding
	err  error // why the defect could not be tried
	took time.Duration
}

// trials returns the trials that must be made.
func (b *bench) trials(suites []string, chosen *regexp.Regexp) (all []*trial, _ error) {
	for _, kind := range suites {
		if !slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("there are no suites %q; there are %s", kind, strings.Join(kinds, ", "))
		}
	}
	for _, d := range catalogue {
		for _, s := range d.suites {
			if slices.Contains(suites, s.kind) && chosen.MatchString(d.promise+" "+d.what) {
				all = append(all, &trial{defect: d, suite: s, done: make(chan struct{})})
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no defect that %s must see matches %q", strings.Join(suites, " or "), chosen)
	}
	return all, nil
}

// carryOut carries out the trials, jobs at a time. Trials of suite faults run alone, since they need the
// whole machine.
func (b *bench) carryOut(ctx context.Context, trials []*trial, jobs int) {
	places := make(chan struct{}, max(1, jobs))
	var alone sync.RWMutex
	for _, t := range trials {
		places <- struct{}{}
		go func() {
			defer func() { <-places }()
			defer close(t.done)
			lock, unlock := alone.RLock, alone.RUnlock
			if t.suite.kind == "faults" {
				lock, unlock = alone.Lock, alone.Unlock
			}
			lock()
			defer unlock()
			b.try(ctx, t)
		}()
	}
}

// try builds the defect and runs the suite.
func (b *bench) try(ctx context.Context, t *trial) {
	begun := time.Now()
	defer func() { t.took = time.Since(begun) }()
	var dir string
	if dir, t.err = os.MkdirTemp(b.dir, ""); t.err != nil {
		return
	}
	defer os.RemoveAll(dir)
	var m binary
	if m, t.err = b.buildBroken(ctx, t, dir); t.err == nil {
		t.finding = b.run(ctx, t.suite, m)
		t.err = ctx.Err()
	}
}

// report prints a line for each trial, in the order of the catalogue, and the score.
func report(w io.Writer, trials []*trial) (well bool) {
	fmt.Fprintf(w, "%-4s %-66s %-11s %7s  %s\n", "", "broken", "suite", "seconds", "found by")
	tried, missed := make(map[string]bool), make(map[string]bool)
	for _, t := range trials {
		<-t.done
		by := t.finding.String()
		switch {
		case t.err != nil:
			by = fmt.Sprintf("NOT TRIED: %v", t.err)
		case !t.found():
			by = fmt.Sprintf("NOT FOUND by %s %s:\n%s", t.suite.in, t.suite.choice, t.out)
		}
		tried[t.defect.what] = true
		if t.err != nil || !t.found() {
			missed[t.defect.what] = true
		}
		fmt.Fprintf(w, "%-4s %-66s %-11s %7.1f  %s\n", t.defect.promise, t.defect.what, t.suite.kind, t.took.Seconds(), by)
	}
	fmt.Fprintf(w, "%d of %d found\n", len(tried)-len(missed), len(tried))
	return len(missed) == 0
}
