// Command bench measures Latchkey beside a session library without a lock: in
// one run, over real HTTP, against one real Redis.
//
// # How it measures
//
//   - redis.go: the Redis, started for the run and killed after it.
//   - peers.go: the libraries, each behind the same handlers.
//   - client.go: a client that costs little, so that the server is what counts.
//   - workload.go: the kinds of load, each with its own check of the result.
//   - measure.go: the rounds.
//   - cost.go: what the requests took from the machine.
//   - table.go: the medians, as Markdown.
//
// Servers and clients share one process, and all peers share the machine. So
// the numbers themselves mean little; what counts is their ratio. The peers
// take turns, in alternating order, and the ratio is taken within each round:
// whatever else the machine does meanwhile, it does to both.
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
//   - picture.go: the same as SVG, by chart.go, scale.go and svg.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

func main() {
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
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	c, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer server.close()
	if c.cpuProfile != "" {
		stop, err := profile(c.cpuProfile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
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

// compare measures Latchkey beside its peers, under every workload.
func compare(ctx context.Context, c config, server *redisServer, stdout, stderr io.Writer) error {
	peers, err := newPeers(server.addr)
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range peers {
			p.close()
		}
	}()
	var results []result
	for _, w := range c.workloads {
		fmt.Fprintf(stderr, "bench: %s: %d rounds of %v for each of %d peers\n", w.name, c.rounds, c.time, len(peers))
		r, err := measure(ctx, c, server, w, peers)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		results = append(results, r)
	}
	return report(stdout, c, server.version, results)
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

// profile writes a CPU profile to a file until stop is called.
func profile(file string) (stop func() error, err error) {
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("-cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("-cpuprofile: %w", err), f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
