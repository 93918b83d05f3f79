// Command bench measures Latchkey beside what else there is, with and without a
// lock: in one run, over real HTTP, against one real Redis.
//
// # How it measures
//
//   - redis.go: the Redis, started for the run and killed after it.
//   - app: the application, which every peer serves in the same way.
//   - fleet.go and ask.go: its processes, which are this program once more.
//   - client.go and crowd.go: clients that cost little, so that the app is what
//     counts.
//   - workload.go: the kinds of load. rush.go: all at once on one session.
//     pageviews.go: a few at once on each of many. loop.go: a session for each.
//     alone.go: only a lock.
//   - measure.go and outcome.go: the rounds.
//   - cost.go: what the requests took from Redis.
//   - turn.go and figure.go: what one round has shown. fair.go: how evenly the
//     processes were served.
//   - rule.go and verdict.go: what must hold, and whether it does.
//   - report.go, table.go and machine.go: all of it as Markdown.
//   - plots.go and chart: some of it as SVG.
//
// Clients, processes of the app and Redis share the machine. So the numbers
// themselves mean little; what counts is their ratio. The peers take turns, in
// alternating order, and a ratio is taken within each round: whatever else the
// machine does meanwhile, it does to all of them.
//
// # The experiment
//
// With -experiment it measures something else: how long who waits for a lock
// should sleep between two tries.
//
//   - way.go: the ways to wait.
//   - page.go: what each request does.
//   - experiment.go: the rounds.
//   - findings.go: the medians, as Markdown.
//   - picture.go: the same as SVG.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func main() {
	app.Run() // does not return in a process of the app
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2) // package flag has said what is wrong
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the program: it measures, and prints the tables.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer server.close()
	work := compare
	if c.experiment {
		work = explore
	}
	err = work(ctx, c, server, stdout, stderr)
	if ctx.Err() != nil {
		return context.Cause(ctx) // says more than the errors of broken connections
	}
	return err
}

// compare measures Latchkey beside its peers, under every workload. The tables
// are printed as they come, and what must hold at the end.
func compare(ctx context.Context, c config, server *redisServer, stdout, stderr io.Writer) error {
	before := busy()
	var results []*result
	for _, w := range c.workloads {
		for _, n := range c.processesOf(w) {
			one := cell{w, n}
			fmt.Fprintf(stderr, "bench: %s\n", one)
			r, err := measure(ctx, c, server, one, stderr)
			if err != nil {
				return fmt.Errorf("%s: %w", one, err)
			}
			results = append(results, r)
			fmt.Fprint(stdout, r.table())
		}
	}
	fmt.Fprintf(stdout, "## What must hold\n\n%s", mustHold(judge(results)))
	return errors.Join(save(c, server.version, before, results), failures(results))
}

// failures is an error where Latchkey has failed: the others may, it must not.
func failures(results []*result) error {
	var err error
	for _, r := range results {
		if o := r.find(app.Latchkey); o != nil && o.err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", r.cell, o.err))
		}
	}
	return err
}

// save writes the files that were asked for.
func save(c config, redisVersion, before string, results []*result) error {
	var err error
	if c.markdown != "" {
		err = os.WriteFile(c.markdown, []byte(report(c, redisVersion, before, results)), 0o644)
	}
	if c.plots == "" {
		return err
	}
	for _, p := range plots() {
		if svg, ok := p.draw(c, redisVersion, results); ok {
			err = errors.Join(err, os.WriteFile(filepath.Join(c.plots, p.file), []byte(svg), 0o644))
		}
	}
	return err
}

// explore makes the experiment.
func explore(ctx context.Context, c config, server *redisServer, stdout, stderr io.Writer) error {
	trials, err := experiment(ctx, c, server, stderr)
	if err != nil {
		return err
	}
	found := findings(c, server.version, trials)
	if c.markdown != "" {
		err = os.WriteFile(c.markdown, []byte(found), 0o644)
	}
	if c.svg != "" {
		err = errors.Join(err, os.WriteFile(c.svg, []byte(picture(c, server.version, trials)), 0o644))
	}
	_, e := io.WriteString(stdout, found) // also where there is no file
	return errors.Join(err, e)
}
