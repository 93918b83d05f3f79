package simulation

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

var broken = flag.Bool("broken", false, "find what is broken on purpose: some minutes")

// limit is how long a defect may stay unfound.
const limit = 2 * time.Minute

// Each defect is found by the simulation. It is a Latchkey of its own, built from changed
// files.
func TestBroken(t *testing.T) {
	if !*broken {
		t.Skip("takes some minutes: give -broken, or run make simulate-broken")
	}
	for _, d := range defects {
		t.Run(d.what, func(t *testing.T) {
			binary := build(t, d)
			begun := time.Now()
			out, err := simulate(t, binary, d.profile)
			rule, found := findings(out)
			if err == nil || !found {
				t.Fatalf("it was not found in %v: %v\n%s", limit, err, out)
			}
			t.Logf("found in %.1f s, %s", time.Since(begun).Seconds(), rule)
		})
	}
}

// build builds this test over a Latchkey with the defect.
func build(t *testing.T, d defect) (binary string) {
	t.Helper()
	list, err := overlay.Write(t.TempDir(), d.edits)
	if err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(t.TempDir(), "simulate.test")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "-overlay", list, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// simulate runs it until a rule is broken, or for the limit.
func simulate(t *testing.T, binary, profile string) (out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^TestSimulation$", "-profile", profile,
		"-seed", fmt.Sprint(*seed), "-operations", "1000000000", "-shrink", "1ns", "-except", *except)
	cmd.Env = append(os.Environ(), inside+"=")
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// report is how TestSimulation begins to tell of a violation.
var report = regexp.MustCompile(`after (\d+ operations), .*:\n\s*(.*)\n`)

// findings returns the rule that was broken, and after how many operations. A bubble that
// cannot end is a finding, too: goroutines are left in it, or one waits for a mutex for ever.
func findings(out string) (text string, found bool) {
	if at := report.FindStringSubmatch(out); at != nil {
		return at[1] + ": " + at[2], true
	}
	if strings.Contains(out, "blocked goroutines remain") || strings.Contains(out, "all goroutines in bubble are blocked") {
		return "goroutines are left", true
	}
	if strings.Contains(out, hanging) {
		return hanging, true
	}
	return "", false
}

// Each defect is one of today's Latchkey: what it changes is there.
func TestDefectsApply(t *testing.T) {
	for _, d := range defects {
		if _, err := overlay.Write(t.TempDir(), d.edits); err != nil {
			t.Errorf("%s: %v", d.what, err)
		}
	}
}
