package store

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/records"
)

// A nil pool, or a nil client, is an error at the start, and not a panic later.
func TestNilPool(t *testing.T) {
	t.Parallel()
	for want, st := range map[string]*Store{"pool is nil": New(nil, Options{}), "client is nil": NewOn(nil, Options{})} {
		wantMessage(t, st.engine.Err(), []string{want})
		_, err := st.engine.Load(t.Context(), theID, records.Terms{})
		wantError(t, "Load", err, st.engine.Err())
		_, _, err = st.engine.Take(t.Context(), theID, records.Terms{})
		wantError(t, "Take", err, st.engine.Err())
		wantError(t, "Close", st.Close(), nil)
	}
}
