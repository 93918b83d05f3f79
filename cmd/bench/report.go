package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// A report is everything that was measured.
type report struct {
	config       config
	redisVersion string
	before       string // how busy the machine was
	results      []*result
}

func newReport(c config, redisVersion string) *report {
	return &report{config: c, redisVersion: redisVersion, before: busy()}
}

// measure measures all cells, and prints the table of each.
func (r *report) measure(ctx context.Context, server *redisServer, stdout, stderr io.Writer) error {
	for _, w := range r.config.workloads {
		for _, n := range w.processes {
			one := cell{w, n}
			fmt.Fprintf(stderr, "bench: %s\n", one)
			how := measure
			if w.sessions > 0 {
				how = measureMemory
			}
			result, err := how(ctx, r.config, server, one, stderr)
			if err != nil {
				return fmt.Errorf("%s: %w", one, err)
			}
			r.results = append(r.results, result)
			fmt.Fprint(stdout, result.table())
		}
	}
	return nil
}

// failures is an error where Latchkey has failed: the others may, it must not.
func (r *report) failures() error {
	var err error
	for _, one := range r.results {
		for _, o := range one.peers {
			if o.peer.Name == app.Latchkey && o.err != nil {
				err = errors.Join(err, fmt.Errorf("%s: %s: %w", one.cell, o.peer.Title, o.err))
			}
		}
	}
	return err
}

// summary returns what it comes down to, as Markdown.
func (r *report) summary() string {
	if r.config.against != "" {
		return "## New ÷ old\n\n" + comparison(r.results) +
			"\n## What must hold\n\n" + mustHold(rulesAgainst(), r.results)
	}
	return "## What must hold\n\n" + mustHold(rules(), r.results) + capacity(r.results)
}

// String returns all of it, as Markdown.
func (r *report) String() string {
	var b strings.Builder
	if r.config.against != "" {
		b.WriteString("# Latchkey beside another version of itself\n\n")
	} else {
		b.WriteString("# Latchkey beside its peers\n\n")
	}
	fmt.Fprintf(&b, "%s. Load average %s before the run, %s after it.\n\n", machine(r.redisVersion), r.before, busy())
	if r.config.against == "" {
		fmt.Fprintf(&b, "Libraries: %s.\n\n", versions())
		fmt.Fprintf(&b, "At most %d rounds, in each of which every peer is loaded for %v or by one crowd. "+
			"Peers that no limit is about take part in every third round, and no more once they have taken %v altogether. "+
			"Made by `make bench`.\n\n", r.config.rounds, r.config.time, r.config.limit)
	} else {
		fmt.Fprintf(&b, "%d rounds, in each of which both are loaded for %v.\n\n", r.config.rounds, r.config.time)
	}
	fmt.Fprintf(&b, "%s\n## Figures\n\n%s", r.summary(), legend)
	for _, one := range r.results {
		b.WriteString(one.table())
	}
	fmt.Fprintf(&b, "## Latchkey's Redis commands\n\n%s", commandLists(r.results))
	return b.String()
}

const legend = `Each figure is the median of all rounds. The clients, the processes of the
application, and Redis share the machine; so the ratios count, not the numbers.

Except in "bare", each process of the application keeps 64 MB that it does not use,
as a real one has data of its own. Otherwise its garbage collector would run every
few megabytes.

- **kept**: of the answered writes, those that were in the session afterwards.
- **round**: from the start of a crowd until all of it is answered.
- **median, 99 %, max**: of the single requests, as the clients see them. Where a
  lock is measured alone: of the waits for it.
- **round trips**, per request: how often Redis has read from its connections
  (total_reads_processed). Commands that are sent together are one; one that is
  larger than a read, as in "200KB", is several.
- **commands**, per request: what Redis has executed, whether a client sent it or
  a script called it (commandstats).
- **Redis, app**: CPU time per request. **allocations**: in all of the app's process,
  per request, net/http's own included. Those of the floor are what any handler has.
- **floor**: the same handler without sessions; it counts in a map of its process.
- **added, added CPU**: the median, and the CPU time of app and Redis together,
  minus the floor's in the same round. Where many clients share the CPUs, a request
  mostly waits for the others; in "lone" the time added is that of its own session.
- **most ÷ least**: requests served by the luckiest process ÷ those by the
  unluckiest, as long as all have some to serve.
- **bytes**: used_memory per session, with no client connected.
- **Latchkey ÷ it**: the ratio in each round, its median, and in brackets its
  least and most.

`

// commandLists returns which commands there were, per request.
func commandLists(results []*result) string {
	var b strings.Builder
	for _, r := range results {
		if o := r.find(app.Latchkey); o != nil && len(o.samples) > 0 {
			fmt.Fprintf(&b, "- %s: %s\n", r.cell, o.commandList())
		}
	}
	return b.String()
}

// commandList leaves out what is rare.
func (o *outcome) commandList() string {
	names := make(map[string]bool)
	for _, s := range o.samples {
		for name := range s.commands {
			names[name] = true
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := median(o.of(figure{of: func(s sample) float64 { return s.commands[name] }}))
		if n >= 0.005 {
			list = append(list, fmt.Sprintf("%s %.2f", name, n))
		}
	}
	return strings.Join(list, ", ")
}

// machine describes where a run was made, as far as the system says.
func machine(redisVersion string) string {
	cpus := fmt.Sprintf("%d CPUs", runtime.NumCPU())
	info, _ := os.ReadFile("/proc/cpuinfo") // where there is none, it is left out
	for line := range strings.Lines(string(info)) {
		if key, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			cpus += " (" + strings.TrimSpace(model) + ")"
			break
		}
	}
	parts := []string{runtime.GOOS + "/" + runtime.GOARCH, cpus}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		parts = append(parts, "kernel "+strings.TrimSpace(string(kernel)))
	}
	return strings.Join(append(parts, runtime.Version(), "Redis "+redisVersion), ", ")
}

// busy returns how busy the machine is: the load average of the last minute.
func busy() string {
	average, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(average), " ")
	return minute
}

// versions lists the libraries measured, and those that they use.
func versions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var all []string
	for _, m := range info.Deps {
		if m.Replace == nil { // Latchkey is as it is here
			all = append(all, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
		}
	}
	return strings.Join(all, ", ")
}
