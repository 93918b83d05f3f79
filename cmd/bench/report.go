package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// report returns everything that was measured, as Markdown. before tells how busy
// the machine was by then.
func report(c config, redisVersion, before string, results []*result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Latchkey beside its peers\n\n%s. Load average %s before the run, %s after it.\n\n", machine(redisVersion), before, busy())
	fmt.Fprintf(&b, "Libraries: %s.\n\n", versions())
	fmt.Fprintf(&b, "At most %d rounds, in each of which every peer is loaded for %v or for one crowd; "+
		"who has taken %v altogether sits out the others. Made by `make bench`.\n\n", c.rounds, c.time, c.limit)
	fmt.Fprintf(&b, "## What must hold\n\n%s\n## Figures\n\n%s", mustHold(judge(results)), legend)
	for _, r := range results {
		b.WriteString(r.table())
	}
	fmt.Fprintf(&b, "## Latchkey's Redis commands\n\n%s", commandLists(results))
	return b.String()
}

const legend = `Each figure is the median over the rounds of what the round has shown. The
clients, the processes of the app, and Redis share the machine; so the ratios
count, not the numbers.

Each process of the app keeps 64 MB that it does not use, as a real application
has data of its own. Else its garbage collector would run every few megabytes.

- **kept**: of the answered writes, those that were in the session afterwards.
- **round**: from the start of a crowd until the last of it is answered.
- **median, 99 %, max**: of the single requests, as the clients see them. Where a
  lock is measured alone: of the waits for it.
- **handler**: the time in the handler, which is more than it is asked to sleep.
- **round trips**, per request: how often Redis has read from its connections
  (total_reads_processed). Commands that are sent together are one; one that is
  larger than a read, as in "big", is several.
- **commands**, per request: what Redis has executed, whether a client sent it or
  a script called it (commandstats).
- **Redis, app**: CPU time per request. **allocations**: in the app, per request.
- **most ÷ least**: requests served by the luckiest process to those by the
  unluckiest, as long as all have some to serve.
- **Latchkey ÷ it**: the ratio within each round, its median, and in brackets its
  least and most.

`

// commandLists tells which commands there were, per request.
func commandLists(results []*result) string {
	var b strings.Builder
	for _, r := range results {
		o := r.find(app.Latchkey)
		if o == nil || len(o.turns) == 0 {
			continue
		}
		fmt.Fprintf(&b, "- %s: %s\n", r.cell, o.commandList())
	}
	return b.String()
}

// commandList leaves out what is rare.
func (o *outcome) commandList() string {
	names := make(map[string]bool)
	for _, t := range o.turns {
		for name := range t.commands {
			names[name] = true
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := median(o.of(figure{of: func(t turn) float64 { return t.commands[name] }}))
		if n >= 0.005 {
			list = append(list, fmt.Sprintf("%s %.2f", name, n))
		}
	}
	return strings.Join(list, ", ")
}
