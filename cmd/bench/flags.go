package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/cmd/bench/app"
)

// config has the values of the command line.
type config struct {
	rounds     int
	time       time.Duration
	limit      time.Duration
	workloads  []workload
	contenders []contender
	against    string
	cpuProfile string
	markdown   string
	chart      string
}

// observed reports whether Latchkey is compared with itself under an observer.
func (c *config) observed() bool {
	return slices.ContainsFunc(c.contenders, func(p contender) bool { return p.Observed })
}

// restarts reports whether the processes are restarted every few rounds.
func (c *config) restarts() bool { return c.against != "" || c.observed() }

// errUsage marks a command line that package flag has rejected.
var errUsage = errors.New("wrong usage")

// The defaults of -rounds.
const (
	usualRounds   = 15
	againstRounds = 50
)

func parseFlags(args []string, stderr io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&c.rounds, "rounds", 0, fmt.Sprintf("measure in this `number` of rounds (default %d, with -against %d)", usualRounds, againstRounds))
	f.DurationVar(&c.time, "time", 250*time.Millisecond, "load each peer for this long in each round")
	f.DurationVar(&c.limit, "limit", 5*time.Second, "leave a peer without a limit out of further rounds of a workload after this time")
	f.StringVar(&c.against, "against", "", "compare this Latchkey with the one in this `directory`, and measure no peers")
	f.StringVar(&c.cpuProfile, "cpuprofile", "", "write a CPU profile of Latchkey's first process to this `file`; the last workload overwrites the others")
	f.StringVar(&c.markdown, "markdown", "", "also write the tables to this `file`")
	f.StringVar(&c.chart, "chart", "", "draw a chart of the workload hot in this `file`")
	workload := f.String("workload", "", "measure these `names` only, separated by commas: "+list(workloadNames()))
	peer := f.String("peer", "", "measure these `names` only: "+list(peerNames()))
	processes := f.String("processes", "", "measure with these `numbers` of processes only, such as 1,2,4")
	delay := f.Duration("delay", 0, "make each round trip to Redis take this much longer")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		return c, fmt.Errorf("%w: %w", errUsage, err)
	}
	given := make(map[string]bool)
	f.Visit(func(one *flag.Flag) { given[one.Name] = true })
	if !given["rounds"] {
		c.rounds = usualRounds
		if c.against != "" {
			c.rounds = againstRounds
		}
	}
	if c.against != "" {
		c.limit = math.MaxInt64
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q: there are only flags, see -help", f.Arg(0))
	case c.rounds < 1:
		return c, fmt.Errorf("-rounds is %d: it must be at least 1", c.rounds)
	case c.time <= 0:
		return c, fmt.Errorf("-time is %v: it must be positive", c.time)
	case c.limit <= 0:
		return c, fmt.Errorf("-limit is %v: it must be positive", c.limit)
	case *delay < 0:
		return c, fmt.Errorf("-delay is %v: it must not be negative", *delay)
	case c.against != "" && (given["peer"] || given["limit"]):
		return c, errors.New("-peer and -limit have no meaning with -against")
	}
	return c, errors.Join(c.choosePeers(*peer), c.chooseWorkloads(*workload, *processes, *delay))
}

func (c *config) choosePeers(given string) error {
	if c.against != "" {
		given = app.Latchkey
	}
	names, err := choice("peer", given, peerNames())
	for _, p := range app.Peers() {
		if slices.Contains(names, p.Name) && !(p.Observed && given == "") {
			c.contenders = append(c.contenders, contender{Peer: p})
		}
	}
	return err
}

func (c *config) chooseWorkloads(given, processes string, delay time.Duration) error {
	names, err := choice("workload", given, workloadNames())
	if err != nil {
		return err
	}
	if c.chart != "" && !slices.Contains(names, "hot") {
		return errors.New("-chart draws the workload hot, which -workload leaves out")
	}
	var numbers []int
	for _, s := range fields(processes) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 16 {
			return fmt.Errorf("-processes names %q: it must be numbers from 1 to 16", s)
		}
		numbers = append(numbers, n)
	}
	for _, w := range workloads() {
		if !slices.Contains(names, w.name) || c.against != "" && given == "" && !w.versus {
			continue
		}
		if len(numbers) > 0 {
			w.processes = numbers
		}
		if delay > 0 && w.sessions == 0 { // memory does not depend on it
			w.delay = delay
		}
		c.workloads = append(c.workloads, w)
	}
	return nil
}

// choice returns the names that were given with a flag, or all names.
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

func workloadNames() []string {
	return namesOf(workloads(), func(w workload) string { return w.name })
}

func peerNames() []string {
	return namesOf(app.Peers(), func(p app.Peer) string { return p.Name })
}

func namesOf[T any](all []T, name func(T) string) []string {
	var names []string
	for _, one := range all {
		names = append(names, name(one))
	}
	return names
}

func list(names []string) string { return strings.Join(names, ", ") }

func fields(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}
