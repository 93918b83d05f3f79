package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// A finding is the result of a suite on a defect.
type finding struct {
	test string // the failed test, if it may also fail for another reason
	how  string
	out  string // the output of the tests
}

func (f finding) found() bool { return f.test != "" || f.how != "" }

func (f finding) String() string { return strings.TrimSpace(f.test + " " + f.how) }

// run runs a suite on a defect.
func (b *bench) run(ctx context.Context, s suite, m binary) finding {
	switch s.kind {
	case "simulation":
		return simulate(ctx, m, s, b.seed)
	case "model":
		return explore(ctx, m, s)
	case "faults":
		return b.test(ctx, m, s.in, s.choice)
	}
	if s.choice != "" {
		if f := b.test(ctx, m, s.in, s.choice); f.found() {
			return f
		}
	}
	f := b.test(ctx, m, s.in, "")
	if f.test != "" { // among so many tests, one may have failed by chance
		return b.test(ctx, m, s.in, f.test)
	}
	return f
}

var (
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	hanging = regexp.MustCompile(`(?s)panic: test timed out.*?running tests:\s+(\S+)`)
)

// test runs ordinary tests: all, or those whose names match. A test that hangs counts as a find, too.
func (b *bench) test(ctx context.Context, m binary, in, name string) (f finding) {
	limit := 5 * time.Minute
	if name != "" {
		limit = time.Minute
	}
	out, err := m.run(ctx, limit+10*time.Second, "-test.short", "-test.failfast", "-test.timeout", limit.String(), "-test.run", exactly(name))
	f.out = out
	if err == nil {
		return f
	}
	if at := failed.FindStringSubmatch(out); at != nil {
		f.test = at[1]
	} else if at := hanging.FindStringSubmatch(out); at != nil {
		f.test, f.how = at[1], "(hangs)"
	}
	if f.test != "" && !b.passes(ctx, in, f.test) {
		return finding{out: out + "\n" + f.test + " fails on Latchkey as it is, too"}
	}
	return f
}

// exactly is the pattern that matches only this name of a test.
func exactly(name string) string {
	if name == "" {
		return ""
	}
	return "^(" + name + ")$"
}

// The simulation goes on until a rule is broken, or until the limit.
const simulationLimit = 2 * time.Minute

var violation = regexp.MustCompile(`after (\d+ operations), .*:\n\s*(.*)\n`)

// A bubble that cannot end counts as a find, too: it leaves goroutines behind, or one waits for a mutex
// for ever.
var stuck = []string{"blocked goroutines remain", "all goroutines in bubble are blocked", "a run hangs"}

func simulate(ctx context.Context, m binary, s suite, seed uint64) (f finding) {
	out, err := m.run(ctx, simulationLimit, "-test.run", "^TestSimulation$", "-profile", s.choice,
		"-seed", fmt.Sprint(seed), "-operations", "1000000000", "-shrink", "1ns")
	f.out = out
	if err == nil {
		return f
	}
	if at := violation.FindStringSubmatch(out); at != nil {
		f.how = at[1] + ": " + at[2]
		return f
	}
	for _, how := range stuck {
		if strings.Contains(out, how) {
			f.how = how
		}
	}
	return f
}

// explore explores every order of the steps of some requests or calls.
func explore(ctx context.Context, m binary, s suite) (f finding) {
	out, err := m.run(ctx, time.Minute, "-test.run", "^TestProtocol$", "-work", s.choice)
	f.out = out
	if _, report, ok := strings.Cut(out, s.choice+": "); err != nil && ok && strings.Contains(report, s.says) {
		f.how, _, _ = strings.Cut(report, "\n")
	}
	return f
}
