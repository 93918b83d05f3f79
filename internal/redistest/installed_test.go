package redistest

import "testing"

// Tests on a real Redis are skipped if none is installed. This test fails then, so that the skips do not
// go unnoticed.
func TestARealRedisIsInstalled(t *testing.T) {
	if _, err := find(); err != nil {
		t.Fatal(err)
	}
}
