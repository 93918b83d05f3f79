package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/plan"
	"github.com/a2139e8d/latchkey/internal/simulation/world"
)

// story shrinks a plan that breaks a rule, and describes what happens in the shrunk plan.
func story(t *testing.T, p plan.Plan, result world.Result) string {
	t.Helper()
	rule := result.Violations[0].Rule
	begun, tries := time.Now(), 0
	small := plan.Shrink(p, func(p plan.Plan) bool {
		tries++
		return run(t, p).Broke(rule)
	}, func() bool { return time.Since(begun) > *patience })
	// By chance, a repetition may differ from the first run.
	for range 20 {
		if again := run(t, small); again.Broke(rule) {
			result = again
			break
		}
	}
	var b strings.Builder
	for _, v := range result.Violations {
		fmt.Fprintf(&b, "%s\n", result.World.Readable(v.String()))
	}
	fmt.Fprintf(&b, "\n%s, cut down from %d requests and %d faults to %d and %d in %d runs. The options were\n%+v\n\n", p.Profile,
		len(p.Requests), len(p.Faults), len(small.Requests), len(small.Faults), tries, small.Options)
	for _, line := range result.World.Lines(result.Sessions()) {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintf(&b, "\nAll of it again: make simulate SEED=%d PROFILE=%q N=1\n", p.Seed, p.Profile)
	fmt.Fprintf(&b, "What is left:    make simulate PLAN=%s\n", save(t, small))
	return b.String()
}

// save writes a plan to a file.
func save(t *testing.T, p plan.Plan) (path string) {
	t.Helper()
	text, err := json.MarshalIndent(p, "", "\t")
	if err == nil {
		err = os.MkdirAll(*saved, 0o777)
	}
	if err == nil {
		path = filepath.Join(*saved, fmt.Sprintf("plan-%d.json", p.Seed))
		err = os.WriteFile(path, text, 0o666)
	}
	if err != nil {
		t.Error(err)
	}
	return path
}
