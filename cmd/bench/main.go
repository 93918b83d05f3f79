// Command bench compares Latchkey with other ways to keep sessions, with and without a lock, in one run, over
// real HTTP, on one real Redis.
//
//	go run . -markdown results.md -chart hot.svg    # make bench; some ten minutes
//	go run . -workload hot,page -peer latchkey,scs  # a part of it
//	go run . -against ../../../other                # this tree and another one
//
// Clients, the processes of the application and Redis share the machine. So the ratios matter, not the
// absolute numbers. In each round the peers take turns, in random order, and a ratio is computed within
// each round: other work of the machine affects all peers alike. Every response is checked, and the bench
// looks in the session for every answered write. Peers without a limit take part in every third round only.
//
// One peer is the floor: the same application without sessions. What another peer needs beyond the floor, in
// the same round, is the cost of its sessions.
//
// # Whether a change makes anything slower
//
// With -against, the peers are this tree and another checkout of Latchkey, such as a git worktree of an older
// commit. Only the library is taken from there: this program is built a second time, with a replace directive
// to the other tree. The workloads are hot, page, spread, read, lone (a single client) and far (sessions of
// 40 KB, with 1 ms for a round trip to Redis). The processes of both trees are restarted every few rounds,
// since two processes of the same program differ, too. The first round of each process does not count, since a
// process is slow at first. The last table has the ratios new ÷ old: the median of the rounds, and the range in
// which the median would lie with 95 % confidence after many more rounds. A worse ratio is bold. One range in
// twenty is wrong, so repeat the measurement if a ratio stands out. The time of a lone client has a limit. A run
// takes eight minutes on two cores; -workload, -rounds and -time shorten it.
//
// # What observers cost
//
//	go run . -peer latchkey,noop,metrics,spans,traces -workload hot,spread -rounds 60
//
// The peers noop, metrics and traces are Latchkey with an observer. noop and metrics are compared with Latchkey. traces
// is compared with spans, a server that makes the same spans but has no observer. The processes are restarted every few
// rounds, and the first round of each does not count. The last table has the range in which the median would lie with
// 95 % confidence after many more rounds. With 60 rounds that range is about 0.05 wide on a shared machine.
//
// # Where to find what
//
//   - redis.go: the Redis, started for the run, and what requests cost it. delay.go: a longer way to Redis.
//   - app: the application, which every peer serves alike. fleet.go: its processes.
//   - client.go: clients that cost little, so that the application dominates.
//   - workload.go: the workloads. pages.go: visitors. alone.go: only a lock. memory.go: Redis's memory for
//     sessions.
//   - measure.go: the rounds. sample.go: the figures of a round, and statistics.
//   - rule.go: what must hold. capacity.go: when Redis is full. report.go, table.go, chart.go: the output.
//   - against.go: the other tree.
//   - cluster: a separate program, for Redis Cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

func main() {
	app.Run() // does not return in a process of the application
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2) // package flag has printed the error
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the program. It prints each table when it is complete, then what must hold, or the comparison of the
// trees.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	c, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	for _, file := range []string{c.markdown, c.chart, c.cpuProfile} {
		if err := writable(file); err != nil {
			return err
		}
	}
	if c.against != "" {
		other, remove, err := build(ctx, c.against)
		if err != nil {
			return err
		}
		defer remove()
		c.contenders = append(c.contenders, other)
	}
	server, err := startRedis(ctx)
	if err != nil {
		return err
	}
	defer server.close()
	r := newReport(c, server.version)
	err = r.measure(ctx, server, stdout, stderr)
	if ctx.Err() != nil {
		return context.Cause(ctx) // says more than the errors of broken connections
	}
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, r.summary())
	if c.markdown != "" {
		err = os.WriteFile(c.markdown, []byte(r.String()), 0o644)
	}
	if picture, ok := chart(c, server.version, r.results); ok && c.chart != "" {
		err = errors.Join(err, os.WriteFile(c.chart, []byte(picture), 0o644))
	}
	return errors.Join(err, r.failures())
}

// writable returns an error if the program could not write a file at its end: that would be told too late.
func writable(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}
