package simulation

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/internal/simulation/plan"
)

// A seed brings back a run exactly, to the nanosecond of each message.
func TestASeedRepeatsItsRun(t *testing.T) {
	if os.Getenv(inside) == "" {
		// The race detector's scheduler chooses at random, so this is done without it.
		if err := exactly("-test.v", "-test.run", "^"+t.Name()+"$", "-seed", fmt.Sprint(*seed), "-profile", *profile); err != nil {
			t.Error(err)
		}
		return
	}
	const runs, tries = 100, 4
	same, later := 0, 0
	for s := *seed; s < *seed+runs; s++ {
		p := draw(t, s, *profile)
		first, second := run(t, p), run(t, p)
		switch {
		case first.Hash == second.Hash:
			same++
		case repeats(t, p, tries, first.Hash, second.Hash):
			later++
		default:
			t.Errorf("seed %d, %s: %s", s, p.Profile, parting(first.World.Lines(nil), second.World.Lines(nil)))
		}
	}
	t.Logf("%d of %d runs were the same at once, %d were disturbed once", same, runs, later)
}

// repeats runs a plan until it goes as it did before. On a busy machine the scheduler may
// interrupt a goroutine that runs for 10 ms, at a moment that no seed decides.
func repeats(t *testing.T, p plan.Plan, tries int, hashes ...uint64) bool {
	for range tries {
		if slices.Contains(hashes, run(t, p).Hash) {
			return true
		}
	}
	return false
}

// parting is where two stories part.
func parting(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("they part in line %d of %d and %d:\n%s\n%s", i+1, len(a), len(b), a[i], b[i])
		}
	}
	return "they read the same"
}
