package main

import (
	"fmt"
	"math"
	"slices"
)

// A verdict is whether a rule is met in a cell.
type verdict struct {
	rule
	cell    cell
	figures []float64 // one a round
	note    string
}

// judge applies all rules to all cells that they are about.
func judge(results []*result) []verdict {
	var all []verdict
	for _, rule := range rules() {
		for _, r := range results {
			if r.name != rule.workload || len(rule.in) > 0 && !slices.Contains(rule.in, r.n) {
				continue
			}
			v := verdict{rule: rule, cell: r.cell}
			v.figures, v.note = rule.of(r)
			all = append(all, v)
		}
	}
	return all
}

// met judges by two digits behind the point, as the table shows them. What must
// not be below a limit is not rounded up to it.
func (l limit) met(v float64) bool {
	if l.least {
		return math.Floor(v*100)/100 >= l.value
	}
	return math.Round(v*100)/100 <= l.value
}

func (l limit) String() string {
	if l.least {
		return fmt.Sprintf("≥ %g", l.value)
	}
	return fmt.Sprintf("≤ %g", l.value)
}

// mustHold returns the verdicts as Markdown.
func mustHold(verdicts []verdict) string {
	rows := [][]string{{"", "median (range of the rounds)", "limit", "met"}}
	for _, v := range verdicts {
		rows = append(rows, v.row())
	}
	return markdown(rows)
}

func (v verdict) row() []string {
	name := fmt.Sprintf("%s: %s", v.cell, v.what)
	if v.note != "" {
		name += ", " + v.note
	}
	if len(v.figures) == 0 {
		return []string{name, "not measured", v.limit.String(), "–"}
	}
	met := "**no**"
	if v.limit.met(median(v.figures)) {
		met = "yes"
	}
	return []string{name, withRange(v.figures), v.limit.String(), met}
}
