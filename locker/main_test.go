package locker

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no lock, whether lost or released, leaves a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
