package lease

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no lock, lost or given back, leaves a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
