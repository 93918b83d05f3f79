package main

import (
	"fmt"
	"slices"
	"strings"
)

// levels in the order of their lines: what must be changed comes first.
var levels = []string{wrong, note, fine}

// A group is one line of doctor: the same finding on several servers.
type group struct {
	finding
	nodes []string
}

// groupedFindings puts equal findings of several servers together, the worst first.
func groupedFindings(all []finding) (groups []group) {
	for _, level := range levels {
		for _, f := range all {
			if f.Level != level {
				continue
			}
			i := slices.IndexFunc(groups, func(g group) bool {
				return g.Level == f.Level && g.Check == f.Check && g.Text == f.Text && g.kind == f.kind && slices.Equal(g.Do, f.Do)
			})
			if i < 0 {
				groups = append(groups, group{finding: f})
				i = len(groups) - 1
			}
			groups[i].nodes = append(groups[i].nodes, f.Node)
		}
	}
	return groups
}

// printFindings prints the findings, of which those that are ok only with --verbose. of has how many servers of
// each kind there are.
func (j *job) printFindings(all []finding, of map[string]int) {
	counts := map[string]int64{}
	changes := false
	for _, g := range groupedFindings(all) {
		counts[g.Level]++
		if g.Level == fine && !j.verbose {
			continue
		}
		fmt.Fprintf(j.out, "%s %s%s\n", j.out.painted(g.Level), printable(g.whose(of)), printable(g.Text))
		for _, command := range g.Do {
			changes = changes || strings.HasPrefix(command, "CONFIG SET ")
			fmt.Fprintf(j.out, "         %s\n", printable(command))
		}
	}
	if changes {
		fmt.Fprintln(j.out, "CONFIG SET lasts until Redis restarts: then CONFIG REWRITE, or edit redis.conf")
	}
	hidden := ""
	if counts[fine] > 0 && !j.verbose {
		hidden = " (-v shows them)"
	}
	fmt.Fprintf(j.out, "%d wrong, %s, %d ok%s\n", counts[wrong], plural(counts[note], "note"), counts[fine], hidden)
}

// whose names the servers of a line. The only server needs no name.
func (g group) whose(of map[string]int) string {
	several, total := 0, of[g.kind]
	for _, n := range of {
		several += n
	}
	switch n := len(g.nodes); {
	case several == 1:
		return ""
	case n == 1:
		return g.nodes[0] + "  "
	case n == total:
		return fmt.Sprintf("all %d %ss  ", n, g.kind)
	default:
		return fmt.Sprintf("%d of %d %ss: %s  ", n, total, g.kind, strings.Join(g.nodes, ", "))
	}
}
