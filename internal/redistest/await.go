package redistest

import (
	"errors"
	"testing"
	"time"
)

// patience is how long a test waits for an event, long enough for a busy machine.
const patience = 40 * time.Second

// Await waits for a condition without which the test cannot continue. missing returns why the condition does not hold
// yet, or nil.
func Await(tb testing.TB, what string, missing func() error) {
	tb.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) { // between two tries
		err := missing()
		if err == nil {
			return
		}
		if time.Since(begun) > patience {
			tb.Fatalf("not after %v: %s: %v", patience, what, err)
		}
	}
}

// Eventually waits until ok returns true.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	Await(tb, what, func() error {
		if !ok() {
			return errNotYet
		}
		return nil
	})
}

var errNotYet = errors.New("not yet")
