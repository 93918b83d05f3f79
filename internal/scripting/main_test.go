package scripting

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no exchange leaves a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
