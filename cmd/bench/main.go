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
	"slices"
	"syscall"
	"time"
)

// config is what the command line says.
type config struct {
	rounds     int
	time       time.Duration
	workloads  []workload
	cpuProfile string
}

// errUsage marks a command line that package flag has complained about.
var errUsage = errors.New("wrong usage")

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

func parseFlags(args []string, stderr io.Writer) (config, error) {
	var c config
	var only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&c.rounds, "rounds", 36, "measure each workload in this `number` of rounds")
	f.DurationVar(&c.time, "time", 250*time.Millisecond, "load each peer for this long in each round")
	f.StringVar(&only, "workload", "", "measure this `name` only: spread, hot or read")
	f.StringVar(&c.cpuProfile, "cpuprofile", "", "write a CPU profile of clients and servers to this `file`")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, fmt.Errorf("%w: %w", errUsage, err)
	}
	c.workloads = slices.DeleteFunc(workloads(), func(w workload) bool { return only != "" && w.name != only })
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q: there are only flags, see -help", f.Arg(0))
	case c.rounds < 1:
		return c, fmt.Errorf("-rounds is %d: it must be at least 1", c.rounds)
	case c.time <= 0:
		return c, fmt.Errorf("-time is %v: it must be positive", c.time)
	case len(c.workloads) == 0:
		return c, fmt.Errorf("-workload is %q: it must be spread, hot or read", only)
	}
	return c, nil
}

// run is the program: it measures every workload and prints the tables.
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
	peers, err := newPeers(server.addr)
	if err != nil {
		return err
	}
	defer func() {
		for _, p := range peers {
			p.close()
		}
	}()

	if c.cpuProfile != "" {
		stop, err := profile(c.cpuProfile)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	var results []result
	for _, w := range c.workloads {
		fmt.Fprintf(stderr, "bench: %s: %d rounds of %v for each of %d peers\n", w.name, c.rounds, c.time, len(peers))
		r, err := measure(ctx, c, server, w, peers)
		if ctx.Err() != nil {
			return context.Cause(ctx) // says more than the errors of broken connections
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		results = append(results, r)
	}
	return report(stdout, c, server.version, results)
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
