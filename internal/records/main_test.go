package records

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that nothing outlives the stores: no watchdog, no sweep.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
