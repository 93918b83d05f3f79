package simulation

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

var (
	seed       = flag.Uint64("seed", 1, "the `seed` of the first run; 0: one by the clock")
	operations = flag.Int("operations", 0, "simulate until there were so many `requests`; 0: two runs of each profile")
	profile    = flag.String("profile", "", "the `profile` of all runs; empty: each seed chooses, or all in turn")
	planFile   = flag.String("plan", "", "run the plan in this `file`, which a failure has written")
	exact      = flag.Bool("exactly", false, "build the test anew so that a seed brings back its run exactly")
	except     = flag.String("except", "", "do not count violations of this `rule`")
	survey     = flag.Bool("survey", false, "go on after a violation, and tell no story")
	saved      = flag.String("saved", os.TempDir(), "the `directory` for plans that break a rule")
	patience   = flag.Duration("shrink", 30*time.Second, "how long to cut down a plan that breaks a rule")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *exact && os.Getenv(inside) == "" {
		if err := exactly(without()...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	// These settings make repeated runs the same: see the package comment.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(3 << 30)
	os.Exit(m.Run())
}
