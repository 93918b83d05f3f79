package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"
)

// config is what the command line says.
type config struct {
	rounds     int
	time       time.Duration
	workloads  []workload
	cpuProfile string

	experiment bool // instead of the workloads
	lock       string
	hold       time.Duration
	markdown   string
	svg        string
}

// errUsage marks a command line that package flag has complained about.
var errUsage = errors.New("wrong usage")

// What -rounds is where it is not given.
const (
	workloadRounds   = 36
	experimentRounds = 2
)

func parseFlags(args []string, stderr io.Writer) (config, error) {
	var c config
	var only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&c.rounds, "rounds", 0, fmt.Sprintf("measure in this `number` of rounds (default %d, with -experiment %d)", workloadRounds, experimentRounds))
	f.DurationVar(&c.time, "time", 250*time.Millisecond, "load each peer for this long in each round")
	f.StringVar(&only, "workload", "", "measure this `name` only: spread, hot or read")
	f.StringVar(&c.cpuProfile, "cpuprofile", "", "write a CPU profile of clients and servers to this `file`")
	f.BoolVar(&c.experiment, "experiment", false, "measure how long to sleep between two tries for a lock, and no peers")
	f.StringVar(&c.lock, "lock", "spin", "with -experiment: the `kind` of lock, spin or timestamp")
	f.DurationVar(&c.hold, "hold", time.Millisecond, "with -experiment: how long a request works under the lock, besides a GET and a SET")
	f.StringVar(&c.markdown, "markdown", "", "with -experiment: also write the table to this `file`")
	f.StringVar(&c.svg, "svg", "", "with -experiment: draw a picture in this `file`")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q: there are only flags, see -help", f.Arg(0))
	}
	given := make(map[string]bool)
	f.Visit(func(one *flag.Flag) { given[one.Name] = true })
	if !given["rounds"] {
		c.rounds = workloadRounds
		if c.experiment {
			c.rounds = experimentRounds
		}
	}
	c.workloads = slices.DeleteFunc(workloads(), func(w workload) bool { return only != "" && w.name != only })
	return c, c.check(only, given)
}

func (c config) check(only string, given map[string]bool) error {
	with, without := []string{"lock", "hold", "markdown", "svg"}, []string{"workload", "time"}
	switch {
	case c.rounds < 1:
		return fmt.Errorf("-rounds is %d: it must be at least 1", c.rounds)
	case c.time <= 0:
		return fmt.Errorf("-time is %v: it must be positive", c.time)
	case c.hold < 0:
		return fmt.Errorf("-hold is %v: it must not be negative", c.hold)
	case c.lock != "spin" && c.lock != "timestamp":
		return fmt.Errorf("-lock is %q: it must be spin or timestamp", c.lock)
	case len(c.workloads) == 0:
		return fmt.Errorf("-workload is %q: it must be spread, hot or read", only)
	}
	for _, name := range with {
		if given[name] && !c.experiment {
			return fmt.Errorf("-%s says something about -experiment, which is missing", name)
		}
	}
	for _, name := range without {
		if given[name] && c.experiment {
			return fmt.Errorf("-%s has no meaning with -experiment", name)
		}
	}
	return nil
}
