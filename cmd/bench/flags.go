package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// config is what the command line says.
type config struct {
	rounds     int
	time       time.Duration
	limit      time.Duration
	workloads  []workload
	peers      []app.Peer
	processes  []int // none: as the workload says
	cpuProfile string

	experiment bool // instead of the workloads
	lock       string
	hold       time.Duration
	svg        string

	markdown string
	plots    string
}

// errUsage marks a command line that package flag has complained about.
var errUsage = errors.New("wrong usage")

// What -rounds is where it is not given.
const (
	workloadRounds   = 12
	experimentRounds = 2
)

func parseFlags(args []string, stderr io.Writer) (config, error) {
	var c config
	var w wanted
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	c.define(f)
	w.define(f)
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
	if err := c.choose(w); err != nil {
		return c, err
	}
	return c, c.check(given)
}

func (c *config) define(f *flag.FlagSet) {
	f.IntVar(&c.rounds, "rounds", 0, fmt.Sprintf("measure in this `number` of rounds (default %d, with -experiment %d)", workloadRounds, experimentRounds))
	f.DurationVar(&c.time, "time", 250*time.Millisecond, "load each peer for this long in each round")
	f.DurationVar(&c.limit, "limit", 5*time.Second, "leave a peer out of further rounds of a workload when it has taken this long")
	f.StringVar(&c.cpuProfile, "cpuprofile", "", "write a CPU profile of Latchkey's first process to this `file`")
	f.StringVar(&c.markdown, "markdown", "", "also write the tables to this `file`")
	f.StringVar(&c.plots, "plots", "", "draw pictures in this `directory`")
	f.BoolVar(&c.experiment, "experiment", false, "measure how long to sleep between two tries for a lock, and no peers")
	f.StringVar(&c.lock, "lock", "spin", "with -experiment: the `kind` of lock, spin or timestamp")
	f.DurationVar(&c.hold, "hold", time.Millisecond, "with -experiment: how long a request works under the lock, besides a GET and a SET")
	f.StringVar(&c.svg, "svg", "", "with -experiment: draw a picture in this `file`")
}

func (c config) check(given map[string]bool) error {
	with, without := []string{"lock", "hold", "svg"}, []string{"workload", "peer", "processes", "time", "limit", "cpuprofile", "plots"}
	switch {
	case c.rounds < 1:
		return fmt.Errorf("-rounds is %d: it must be at least 1", c.rounds)
	case c.time <= 0:
		return fmt.Errorf("-time is %v: it must be positive", c.time)
	case c.limit <= 0:
		return fmt.Errorf("-limit is %v: it must be positive", c.limit)
	case c.hold < 0:
		return fmt.Errorf("-hold is %v: it must not be negative", c.hold)
	case c.lock != "spin" && c.lock != "timestamp":
		return fmt.Errorf("-lock is %q: it must be spin or timestamp", c.lock)
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
