package store

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no goroutine outlives the stores, not even a sweep.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}
