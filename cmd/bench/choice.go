package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func workloadNames() []string {
	var names []string
	for _, w := range workloads() {
		names = append(names, w.name)
	}
	return names
}

func peerNames() []string {
	var names []string
	for _, p := range app.Peers() {
		names = append(names, p.Name)
	}
	return names
}

func list(names []string) string { return strings.Join(names, ", ") }

// wanted is what the command line chooses, with commas in between. What is empty
// chooses everything.
type wanted struct{ workloads, peers, processes string }

func (w *wanted) define(f *flag.FlagSet) {
	f.StringVar(&w.workloads, "workload", "", "measure these `names` only, with commas in between: "+list(workloadNames()))
	f.StringVar(&w.peers, "peer", "", "measure these `names` only: "+list(peerNames()))
	f.StringVar(&w.processes, "processes", "", "measure with these `numbers` of processes only, such as 1,2,4")
}

// choose fills in what is measured.
func (c *config) choose(w wanted) error {
	names, err := choice("workload", w.workloads, workloadNames())
	if err != nil {
		return err
	}
	c.workloads = slices.DeleteFunc(workloads(), func(w workload) bool { return !slices.Contains(names, w.name) })
	if names, err = choice("peer", w.peers, peerNames()); err != nil {
		return err
	}
	c.peers = slices.DeleteFunc(app.Peers(), func(p app.Peer) bool { return !slices.Contains(names, p.Name) })
	for _, s := range fields(w.processes) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 16 {
			return fmt.Errorf("-processes names %q: it must be numbers from 1 to 16", s)
		}
		c.processes = append(c.processes, n)
	}
	return nil
}

// choice returns the names that were given with a flag, or all.
func choice(flag, given string, all []string) ([]string, error) {
	names := fields(given)
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("-%s names %q: there are %s", flag, name, list(all))
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return names, nil
}

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

// processesOf returns in how many processes a workload is measured.
func (c config) processesOf(w workload) []int {
	if len(c.processes) > 0 {
		return c.processes
	}
	return w.processes
}
