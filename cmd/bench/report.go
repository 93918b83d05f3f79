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

// A report has all measurements.
type report struct {
	config       config
	redisVersion string
	before       string // how busy the machine was
	results      []*result
}

func newReport(c config, redisVersion string) *report {
	return &report{config: c, redisVersion: redisVersion, before: busy()}
}

// measure measures all cells, and prints the table of each cell.
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

// failures returns an error if Latchkey has failed: the other peers may fail, Latchkey must not.
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

// summary returns the results in short, as Markdown.
func (r *report) summary() string {
	if r.config.against != "" {
		return "## New ÷ old\n\n" + comparison(r.results) +
			"\n## What must hold\n\n" + mustHold(rulesAgainst(), r.results, ofRounds)
	}
	if r.config.observed() {
		return "## What must hold\n\n" + mustHold(rulesObserved(r.config.contenders), r.results, ofMedian)
	}
	return "## What must hold\n\n" + mustHold(rules(), r.results, ofRounds) + capacity(r.results)
}

// String returns the whole report, as Markdown.
func (r *report) String() string {
	var b strings.Builder
	if r.config.against != "" {
		b.WriteString("# Latchkey compared with another version of itself\n\n")
	} else {
		b.WriteString("# Latchkey compared with its peers\n\n")
	}
	fmt.Fprintf(&b, "%s. Load average %s before the run, %s after it.\n\n", machine(r.redisVersion), r.before, busy())
	if r.config.against == "" {
		fmt.Fprintf(&b, "Libraries: %s.\n\n", versions())
		fmt.Fprintf(&b, "At most %d rounds. In each round every peer is loaded for %v or by one crowd. "+
			"Peers without a limit take part in every third round, until they have taken %v altogether. "+
			"Made by `make bench`.\n\n", r.config.rounds, r.config.time, r.config.limit)
	} else {
		fmt.Fprintf(&b, "%d rounds. In each round both are loaded for %v.\n\n", r.config.rounds, r.config.time)
	}
	fmt.Fprintf(&b, "%s\n## Figures\n\n%s", r.summary(), legend)
	for _, one := range r.results {
		b.WriteString(one.table())
	}
	fmt.Fprintf(&b, "## Latchkey's Redis commands\n\n%s", commandLists(r.results))
	return b.String()
}

const legend = `Each figure is the median of all rounds. The clients, the processes of the application
and Redis share the machine, so the ratios matter, not the absolute numbers.

Except in "bare", each process of the application keeps 64 MB of unused heap, to stand
for the data of a real application. Without it the garbage collector would run every
few megabytes.

- **kept**: the share of the answered writes that were in the session afterwards.
- **round**: from the start of a crowd until all its requests are answered.
- **median, 99 %, max**: of the single requests, as the clients see them. If a lock is
  measured alone, they are of the waits for the lock.
- **round trips**, per request: how often Redis has read from its connections
  (total_reads_processed). Commands that are sent together count as one; a command that is
  larger than a read, as in "200KB", counts as several.
- **commands**, per request: the commands that Redis has executed, sent by a client or
  called by a script (commandstats).
- **Redis, app**: CPU time per request. **allocations**: in the whole process of the app,
  per request, including those of net/http. The floor shows those of any handler.
- **floor**: the same handler without sessions; it counts in a map of its process.
- **added, added CPU**: the median, and the CPU time of app and Redis together,
  minus the floor's in the same round. If many clients share the CPUs, a request
  mostly waits for the others; in "lone" the added time is that of its own session.
- **most ÷ least**: requests served by the luckiest process ÷ those served by the
  unluckiest, as long as all processes have requests to serve.
- **bytes**: used_memory per session, with no client connected.
- **Latchkey ÷ peer**: the median of the ratios of all rounds, and in brackets the
  smallest and the largest.

`

// commandLists returns the commands per request.
func commandLists(results []*result) string {
	var b strings.Builder
	for _, r := range results {
		if o := r.find(app.Latchkey); o != nil && len(o.samples) > 0 && r.has(commands) {
			fmt.Fprintf(&b, "- %s: %s\n", r.cell, o.commandList())
		}
	}
	return b.String()
}

// commandList leaves out rare commands.
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

// machine describes the machine of a run, as far as the system knows.
func machine(redisVersion string) string {
	cpus := fmt.Sprintf("%d CPUs", runtime.NumCPU())
	info, _ := os.ReadFile("/proc/cpuinfo") // if there is none, the model is left out
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

// busy returns the load average of the last minute.
func busy() string {
	average, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(average), " ")
	return minute
}

// versions lists the measured libraries, and the libraries that they use.
func versions() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var all []string
	for _, m := range info.Deps {
		if m.Replace == nil && m.Version != "(devel)" { // Latchkey is of this tree: replaced, or in the workspace
			all = append(all, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
		}
	}
	return strings.Join(all, ", ")
}
