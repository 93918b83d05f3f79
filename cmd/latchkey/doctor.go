package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

const doctorAbout = `Compares Redis with the settings in store/REDIS.md: version, policy and use of
memory, persistence, replicas, rights, clock, cluster; on each node. A line that
begins with "wrong" says what to set, and makes the exit status 1. A line that
begins with "note" depends on your needs. Nothing is changed. store/SYMPTOMS.md
says what mistakes look like in a program's log.
`

// The levels of a finding.
const (
	fine  = "ok"
	note  = "note"
	wrong = "wrong"
)

// A finding is one line of doctor.
type finding struct {
	Node  string `json:"node"`
	Level string `json:"level"`
	Check string `json:"check"`
	Text  string `json:"text"`
}

// A diagnosis examines one node.
type diagnosis struct {
	*job
	node     *node
	info     map[string]string // of INFO; empty if INFO is refused
	findings []finding
}

func (d *diagnosis) say(level, check, format string, args ...any) {
	d.findings = append(d.findings, finding{d.node.address, level, check, fmt.Sprintf(format, args...)})
}

// checks are the checks of a node whose INFO is known.
var checks = []func(*diagnosis){
	(*diagnosis).version,
	(*diagnosis).policy, (*diagnosis).memory, (*diagnosis).evictions, (*diagnosis).connections,
	(*diagnosis).persistence, (*diagnosis).disk,
	(*diagnosis).role, (*diagnosis).replicas,
	(*diagnosis).rights,
	(*diagnosis).clock,
	(*diagnosis).cluster,
}

func doctor(j *job) error {
	nodes, err := j.redis.nodes(j.ctx)
	if err != nil {
		return err
	}
	all := []finding{}
	for _, n := range nodes {
		found, err := j.diagnose(n)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	counts := map[string]int64{}
	for _, f := range all {
		counts[f.Level]++
	}
	if j.json {
		err = j.printJSON(all)
	} else {
		j.printFindings(all, counts, len(nodes) > 1)
	}
	if err == nil && counts[wrong] > 0 {
		err = errFound
	}
	return err
}

// diagnose returns an error if the server cannot be reached. On a cluster that is a finding instead.
func (j *job) diagnose(n *node) ([]finding, error) {
	d := &diagnosis{job: j, node: n}
	text, err := "", n.err
	if err == nil {
		text, err = n.do(j.ctx, "INFO").ToString()
		switch {
		case isRefused(err):
			d.say(note, "info", "INFO is refused, so most settings are not checked: use a Redis user that may run it (%s)", err)
			err = nil
		case err != nil:
			err = n.explained(err)
		}
	}
	switch {
	case err != nil && d.inCluster():
		d.say(wrong, "node", "the node cannot be reached: %v: start it, or remove it from the cluster", err)
		return d.findings, nil
	case err != nil:
		return nil, err
	}
	d.info = parseInfo(text)
	for _, check := range checks {
		check(d)
		if err := j.ctx.Err(); err != nil {
			return nil, err
		}
	}
	return d.findings, nil
}

// parseInfo reads lines of name:value.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // RESP3 may prefix the text
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// number returns a number of INFO, or -1 if it is missing.
func (d *diagnosis) number(name string) int64 {
	n, err := strconv.ParseInt(d.info[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// config returns a setting. If CONFIG GET is refused, it adds a note and returns false.
func (d *diagnosis) config(name string) (string, bool) {
	found, err := d.node.do(d.ctx, "CONFIG", "GET", name).AsStrMap()
	if err == nil && found[name] != "" {
		return found[name], true
	}
	why := "the server does not know it"
	if err != nil {
		why = err.Error()
	}
	d.say(note, name, "%s is not known: CONFIG GET %[1]s is refused (%s)", name, why)
	return "", false
}

func (d *diagnosis) inCluster() bool {
	return d.node.redis.client.Mode() == rueidis.ClientModeCluster
}

func (j *job) printFindings(all []finding, counts map[string]int64, several bool) {
	for _, f := range all {
		line := fmt.Sprintf("%-6s ", f.Level)
		if several {
			line += f.Node + "  "
		}
		fmt.Fprintln(j.out, printable(line+f.Text))
	}
	fmt.Fprintf(j.out, "%d ok, %s, %d wrong\n", counts[fine], plural(counts[note], "note"), counts[wrong])
}
