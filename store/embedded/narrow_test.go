package embedded

import (
	"strconv"
	"testing"

	"github.com/a2139e8d/latchkey/store"
)

// On a 32-bit system sessions would fail one by one. Run it there with GOARCH=386.
func TestOpenNeedsA64BitSystem(t *testing.T) {
	t.Parallel()
	st, err := Open(store.Options{})
	if err == nil {
		defer st.Close()
	}
	if (err == nil) != (strconv.IntSize == 64) {
		t.Errorf("an int has %d bits, and Open returns %v", strconv.IntSize, err)
	}
}
