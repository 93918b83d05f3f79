package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
)

// A difference is one that remains, for a reason. It must occur in all the cases, variants and
// protocols that it names.
type difference struct {
	cases    []string   // names, in which each * stands for anything
	variants []string   // likewise; all but None, if empty
	on       []protocol // all, if empty
	lines    []string   // as diff returns them; each * stands for anything
	why      string
}

var (
	locking = []string{"Exclusive, cookie", "Exclusive, *writes", "Optimistic, *s"}                                     // before the handler runs
	using   = []string{"Exclusive, creates", "Exclusive, *writes", "ReadOnly, reads", "Optimistic, *s", "Lazy, writes"} // the session
	opening = append([]string{"Exclusive, *cookie"}, using...)
)

var differences = slices.Concat(
	differencesOfLength,
	differencesOfStatus,
	differencesOfHeader,
	differencesOfBody,
	differencesOfEnd,
)

// unexplained returns what of a diff the list does not explain, or "".
func unexplained(name string, v variant, p protocol, diff []string) string {
	var problems []string
	diff = slices.Clone(diff)
	for _, d := range differences {
		if !d.isOf(name, v, p) {
			continue
		}
		for _, line := range d.lines {
			i := slices.IndexFunc(diff, func(s string) bool { return matches(line, s) })
			if i < 0 {
				problems = append(problems, fmt.Sprintf("no longer: %s (%s)", line, d.why))
				continue
			}
			diff = slices.Delete(diff, i, i+1)
		}
	}
	return strings.Join(append(diff, problems...), "\n")
}

func (d difference) isOf(name string, v variant, p protocol) bool {
	like := func(s string) func(string) bool {
		return func(pattern string) bool { return matches(pattern, s) }
	}
	return slices.ContainsFunc(d.cases, like(name)) &&
		(len(d.variants) == 0 && v.mode != middleware.None || slices.ContainsFunc(d.variants, like(v.name))) &&
		(len(d.on) == 0 || slices.Contains(d.on, p))
}

// checkList checks that the list names cases that exist, and that no two have the same name.
func checkList(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range cases {
		if seen[c.name] {
			t.Errorf("two cases are called %q", c.name)
		}
		seen[c.name] = true
	}
	for _, d := range differences {
		for _, pattern := range d.cases {
			if !slices.ContainsFunc(cases, func(c testCase) bool { return matches(pattern, c.name) }) {
				t.Errorf("the list of differences names %q: there is no such case", pattern)
			}
		}
		if len(d.lines) == 0 || d.why == "" {
			t.Errorf("the difference of %q has no lines, or no reason", d.cases)
		}
	}
}
