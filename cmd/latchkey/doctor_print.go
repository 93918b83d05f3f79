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

// servers counts the servers of one kind.
type servers struct{ all, replied int }

// printFindings prints the findings. Without --verbose it leaves out those that are ok. of has the number of servers of
// each kind.
func (j *job) printFindings(all []finding, of map[string]servers) {
	counts := map[string]int64{}
	configures, grants := false, false
	for _, g := range groupedFindings(all) {
		counts[g.Level]++
		if g.Level == fine && !j.verbose {
			continue
		}
		fmt.Fprintf(j.out, "%s %s%s\n", j.out.painted(g.Level), printable(g.whose(of)), printable(g.Text))
		for _, command := range g.Do {
			configures = configures || strings.HasPrefix(command, "CONFIG SET ")
			grants = grants || strings.HasPrefix(command, "ACL SETUSER ")
			fmt.Fprintf(j.out, "         %s\n", printable(command))
		}
	}
	if configures {
		fmt.Fprintln(j.out, "what CONFIG SET has changed is lost when Redis restarts: run CONFIG REWRITE after it, or edit redis.conf")
	}
	if grants {
		fmt.Fprintln(j.out, "what ACL SETUSER has changed is lost when Redis restarts: run ACL SAVE after it, or CONFIG REWRITE if Redis has no aclfile")
	}
	hidden := ""
	if counts[fine] > 0 && !j.verbose {
		hidden = " (-v shows them)"
	}
	fmt.Fprintf(j.out, "%d wrong, %s, %d ok%s\n", counts[wrong], plural(counts[note], "note"), counts[fine], hidden)
}

// whose names the servers of a line. The only server needs no name, unless it is a Sentinel: what does not work may be
// the master, too.
func (g group) whose(of map[string]servers) string {
	kind, several := of[g.kind], 0
	for _, s := range of {
		several += s.all
	}
	n := len(g.nodes)
	everyone := fmt.Sprintf("all %d", n)
	if n == 2 {
		everyone = "both"
	}
	switch {
	case several == 1 && g.kind == aNode:
		return ""
	case n == 1 && g.kind == aNode:
		return g.nodes[0] + "  "
	case n == 1:
		return g.kind + " " + g.nodes[0] + "  "
	case n == kind.all:
		return fmt.Sprintf("%s %ss  ", everyone, g.kind)
	case n == kind.replied:
		return fmt.Sprintf("%s %ss that replied  ", everyone, g.kind)
	default:
		return fmt.Sprintf("%d of %d %ss: %s  ", n, kind.all, g.kind, strings.Join(g.nodes, ", "))
	}
}
