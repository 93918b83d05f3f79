package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// run runs a suite, and returns which test has found the defect, and how. If none has, it returns
// what the tests have printed.
func (s suite) run(ctx context.Context, m binary, seed uint64) (by, out string) {
	switch s.kind {
	case "simulation":
		return s.simulate(ctx, m, seed)
	case "model":
		return s.explore(ctx, m)
	case "faults":
		return test(ctx, m, s.choice)
	}
	if s.choice != "" {
		if by, _ := test(ctx, m, s.choice); by != "" {
			return by, ""
		}
	}
	return test(ctx, m, "")
}

var (
	failed  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	hanging = regexp.MustCompile(`(?s)panic: test timed out.*?running tests:\s+(\S+)`)
)

// test runs ordinary tests. Those that hang have found something, too.
func test(ctx context.Context, m binary, pattern string) (by, out string) {
	limit := 5 * time.Minute
	if pattern != "" {
		limit = time.Minute
	}
	out, err := m.run(ctx, limit+10*time.Second, "-test.short", "-test.failfast", "-test.timeout", limit.String(), "-test.run", exactly(pattern))
	if at := failed.FindStringSubmatch(out); err != nil && at != nil {
		return at[1], out
	}
	if at := hanging.FindStringSubmatch(out); err != nil && at != nil {
		return at[1] + ", which hangs", out
	}
	return "", out
}

// exactly is the pattern of a test's whole name.
func exactly(name string) string {
	if name == "" {
		return ""
	}
	return "^(" + name + ")$"
}

// The simulation goes on until a rule is broken, or for the limit.
const simulationLimit = 2 * time.Minute

var violation = regexp.MustCompile(`after (\d+ operations), .*:\n\s*(.*)\n`)

// A bubble that cannot end is a finding, too: goroutines are left in it, or one waits for a mutex
// for ever.
var stuck = []string{"blocked goroutines remain", "all goroutines in bubble are blocked", "a run hangs"}

func (s suite) simulate(ctx context.Context, m binary, seed uint64) (by, out string) {
	out, err := m.run(ctx, simulationLimit, "-test.run", "^TestSimulation$", "-profile", s.choice,
		"-seed", fmt.Sprint(seed), "-operations", "1000000000", "-shrink", "1ns")
	if at := violation.FindStringSubmatch(out); err != nil && at != nil {
		return at[1] + ": " + at[2], out
	}
	for _, how := range stuck {
		if err != nil && strings.Contains(out, how) {
			return how, out
		}
	}
	return "", out
}

// explore looks at every order of the steps of three requests.
func (s suite) explore(ctx context.Context, m binary) (by, out string) {
	out, err := m.run(ctx, time.Minute, "-test.run", "^TestProtocol$", "-work", s.choice)
	_, report, found := strings.Cut(out, s.choice+": ")
	if err == nil || !found || !strings.Contains(report, s.says) {
		return "", out
	}
	by, _, _ = strings.Cut(report, "\n")
	return by, out
}
