// Defects breaks Latchkey on purpose, in many ways, and shows that the tests notice.
//
//	go run ./internal/defects -suites tests,simulation,model,faults -only 'P3|queue'
//
// The catalogue has an entry for each defect: the promise that it breaks, what is broken, the edits that
// break it, and the suites that must find it. Each defect is built from changed copies of the sources, and
// the suites run on the result. The last line of the output is the score.
//
// An edit names what it breaks, not the text of it: see package overlay. So an edit stays valid when code of
// the library is only reworded. TestEveryDefectApplies checks that every edit still finds its place.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"

	"github.com/a2139e8d/latchkey/internal/overlay"
)

func main() {
	suites := flag.String("suites", "tests,simulation", "run `these`: tests, simulation, model, faults")
	only := flag.String("only", ".", "try the defects whose promise and phrase match this `pattern`")
	jobs := flag.Int("j", runtime.NumCPU(), "try so `many` at once; those of faults come one by one")
	seed := flag.Uint64("seed", 1, "the first `seed` of each simulation")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	well, err := score(ctx, options{strings.Split(*suites, ","), *only, *jobs, *seed})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !well {
		stop()
		os.Exit(1)
	}
}

type options struct {
	suites []string
	only   string
	jobs   int
	seed   uint64
}

// score tries the defects that are chosen, and prints what has found each.
func score(ctx context.Context, o options) (well bool, err error) {
	chosen, err := regexp.Compile(o.only)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "defects")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	root, err := overlay.Sources("github.com/a2139e8d/latchkey")
	if err != nil {
		return false, err
	}
	b := &bench{root: root, dir: dir, seed: o.seed}
	trials, err := b.trials(o.suites, chosen)
	if err != nil {
		return false, err
	}
	go b.carryOut(ctx, trials, o.jobs)
	return report(os.Stdout, trials), nil
}
