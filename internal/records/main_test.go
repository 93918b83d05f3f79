package records

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that nothing outlives the engines: no watchdog, no sweep. Whenever a tenure gives up its
// mutex, its invariants hold.
func TestMain(m *testing.M) {
	checked = func(t *tenure) {
		if broken := t.check(); broken != "" {
			panic("broken invariant: " + broken)
		}
	}
	goleak.VerifyTestMain(m)
}
