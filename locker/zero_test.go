package locker

import (
	"testing"
	"time"
)

// A zero value is no lock and no lease, and says so.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	for what, l := range map[string]Locker{"Spin": new(Spin), "Timestamp": new(Timestamp), "Redlock": new(Redlock)} {
		if _, err := l.Lock(t.Context(), "k"); err != errZero {
			t.Errorf("Lock of a zero %s: %v", what, err)
		}
	}
	var l Lease
	for what, err := range map[string]error{
		"Extend": l.Extend(t.Context(), time.Second), "Unlock": l.Unlock(t.Context()), "UnlockAfter": l.UnlockAfter(t.Context(), time.Second),
	} {
		if err == nil || err.Error() != "locker: the zero Lease holds no lock: Lock returns a Lease" {
			t.Errorf("%s of a zero Lease: %v", what, err)
		}
	}
	if l.Validity() != 0 {
		t.Error("a zero Lease is valid")
	}
}
