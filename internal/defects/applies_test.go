package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"

	"github.com/a2139e8d/latchkey/internal/overlay"
	"github.com/a2139e8d/latchkey/internal/simulation/plan"
)

// Each defect fits the present sources: the code that it changes exists exactly once, and the changed Lua file
// can be parsed. (Package overlay checks the Go files.)
func TestEveryDefectApplies(t *testing.T) {
	t.Parallel()
	for _, d := range catalogue {
		changed, err := overlay.Apply(d.edits)
		if err != nil {
			t.Errorf("%s %q: %v", d.promise, d.what, err)
		}
		for path, text := range changed {
			if filepath.Base(filepath.Dir(path)) == "golden" {
				if _, err := parse.Parse(strings.NewReader(text), path); err != nil {
					t.Errorf("%s %q: %v", d.promise, d.what, err)
				}
			}
		}
	}
}

// Each defect is in the catalogue once, breaks a promise, and names an existing suite that must find it.
func TestEveryDefectIsSeenBySomeSuite(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	promise := regexp.MustCompile(`^P([1-9]|1[0-7])$`)
	for _, d := range catalogue {
		if !promise.MatchString(d.promise) || d.what == "" || seen[d.what] || len(d.suites) == 0 || len(d.edits) == 0 {
			t.Errorf("%s %q is listed twice, or lacks a field", d.promise, d.what)
		}
		seen[d.what] = true
		for _, s := range d.suites {
			there := true
			switch s.kind {
			case "simulation":
				there = slices.Contains(plan.Profiles(), s.choice)
			case "tests", "faults":
				there = declares(t, s.in, s.choice)
			}
			if !there {
				t.Errorf("%s %q: there is no %q in %s", d.promise, d.what, s.choice, s.in)
			}
		}
	}
}

// declares reports whether a package has a test of that name.
func declares(t *testing.T, in, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", in, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return name == "" || slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "\nfunc "+name+"(")
	})
}

// The score lists which defects were found, and which were not.
func TestWhatIsFoundIsReported(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	close(done)
	var b strings.Builder
	well := report(&b, []*trial{
		{defect: defect{"P1", "no lock", nil, nil}, suite: tests("store", "TestOne"), finding: finding{test: "TestOne"}, done: done},
		{defect: defect{"P1", "no fence", nil, nil}, suite: tests("store", "TestTwo"), finding: finding{out: "ok"}, done: done},
	})
	for _, want := range []string{"found by\n", " TestOne\n", "NOT FOUND by store TestTwo:\nok\n", "\n1 of 2 found\n"} {
		if !strings.Contains(b.String(), want) || well {
			t.Errorf("%t, and %q is not in\n%s", well, want, b.String())
		}
	}
}

func TestWhatCannotBeChosen(t *testing.T) {
	t.Parallel()
	for kind, pattern := range map[string]string{"test": ".", "tests": "no such defect"} {
		if trials, err := (&bench{}).trials([]string{kind}, regexp.MustCompile(pattern)); err == nil {
			t.Errorf("-suites %s -only %q: %d trials", kind, pattern, len(trials))
		}
	}
}
