package records

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no goroutine outlives the engines, not even a sweep, and that the invariants of a tenure hold
// whenever its mutex is unlocked.
func TestMain(m *testing.M) {
	checked = func(t *tenure) {
		if broken := t.check(); broken != "" {
			panic("broken invariant: " + broken)
		}
	}
	goleak.VerifyTestMain(m)
}
