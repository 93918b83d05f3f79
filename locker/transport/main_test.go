package transport

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no exchange, however it ended, leaves a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
