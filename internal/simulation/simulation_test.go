package simulation

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/internal/simulation/world"
)

// No rule is broken, whatever the faults.
func TestSimulation(t *testing.T) {
	begun, last := time.Now(), time.Now()
	done, runs, failures, events, exchanges := 0, 0, 0, 0, 0
	progress := func() string {
		return fmt.Sprintf("%d operations, %d runs, %d events of %d exchanges and more, %.0f s, %d violations",
			done, runs, events, exchanges, time.Since(begun).Seconds(), failures)
	}
	for p := range plans(t, func() bool { return done < *operations }) {
		result := run(t, p)
		done, runs, failures = done+result.Operations, runs+1, failures+len(result.Violations)
		events, exchanges = events+result.Told, exchanges+result.Exchanges
		switch {
		case len(result.Violations) == 0:
		case *survey:
			t.Errorf("seed %d, %s: %d: %v", p.Seed, p.Profile, len(result.Violations), result.Violations[0])
		default:
			t.Errorf("after %s:\n%s", progress(), story(t, p, result))
			return
		}
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			fmt.Println(progress())
		}
	}
	t.Log(progress())
}

// seeds is the default number of runs of each profile.
const seeds = 2

// plans returns the plans to run: the plan of a file, or the plans of all seeds while more are wanted. If no
// number of operations is given, it returns the plans of a few seeds of each profile.
func plans(t *testing.T, more func() bool) iter.Seq[plan.Plan] {
	return func(yield func(plan.Plan) bool) {
		switch {
		case *planFile != "":
			yield(load(t))
		case *operations > 0:
			for s := *seed; more() && yield(draw(t, s, *profile)); s++ {
			}
		default:
			for _, name := range plan.Profiles() {
				for s := *seed; s < *seed+seeds && (*profile == "" || name == *profile); s++ {
					if !yield(draw(t, s, name)) {
						return
					}
				}
			}
		}
	}
}

// load returns the plan in the given file.
func load(t *testing.T) (p plan.Plan) {
	t.Helper()
	text, err := os.ReadFile(*planFile)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// draw returns the plan of a seed.
func draw(t *testing.T, seed uint64, profile string) plan.Plan {
	t.Helper()
	p, err := plan.Draw(seed, profile)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hanging is printed if a run does not seem to end. The -timeout flag is for the whole test.
const hanging = "a run hangs"

// run carries out a plan, then collects garbage.
func run(t *testing.T, p plan.Plan) world.Result {
	t.Helper()
	hangs := time.AfterFunc(time.Minute, func() {
		fmt.Fprintf(os.Stderr, "%s: -seed %d -profile %q\n", hanging, p.Seed, p.Profile)
	})
	defer hangs.Stop()
	result := world.Run(t, p).Except(*except)
	runtime.GC()
	return result
}
