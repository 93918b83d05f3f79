package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/internal/simulation/world"
)

// Whatever the faults, no rule is broken.
func TestSimulation(t *testing.T) {
	begun, told := time.Now(), time.Now()
	done, runs, failures := 0, 0, 0
	progress := func() string {
		return fmt.Sprintf("%d operations, %d runs, %.0f s, %d violations", done, runs, time.Since(begun).Seconds(), failures)
	}
	for p, more := next(t, *seed), true; more; p = next(t, p.Seed+1) {
		result := run(t, p)
		done, runs, failures = done+result.Operations, runs+1, failures+len(result.Violations)
		switch {
		case len(result.Violations) == 0:
		case *survey:
			t.Errorf("seed %d, %s: %d: %v", p.Seed, p.Profile, len(result.Violations), result.Violations[0])
		default:
			t.Errorf("after %s:\n%s", progress(), story(t, p, result))
			return
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Println(progress())
		}
		more = *planFile == "" && (done < *operations || *operations == 0 && time.Since(begun) < 5*time.Second)
	}
	t.Log(progress())
}

// next returns the plan of a seed, or that of a file.
func next(t *testing.T, seed uint64) (p plan.Plan) {
	t.Helper()
	if *planFile == "" {
		return draw(t, seed, *profile)
	}
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

// hanging is what is printed of a run that does not end.
const hanging = "a run hangs"

// run carries out a plan, and collects garbage behind it.
func run(t *testing.T, p plan.Plan) world.Result {
	t.Helper()
	hangs := time.AfterFunc(time.Minute, func() {
		fmt.Fprintf(os.Stderr, "%s: -seed %d -profile %q\n", hanging, p.Seed, p.Profile)
		os.Exit(2)
	})
	defer hangs.Stop()
	result := world.Run(t, p).Except(*except)
	runtime.GC()
	return result
}
