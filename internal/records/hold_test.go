package records

import (
	"slices"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// wantNotFound checks that the session is unknown, and that a take leaves neither a lock nor a record. So a
// forged ID costs nothing, and cannot be adopted.
func wantNotFound(t *testing.T, s *redistest.Server, st *Engine, terms Terms) {
	t.Helper()
	before := s.Keys(t)
	_, _, err := st.Take(t.Context(), theID, terms)
	wantError(t, "Take", err, ErrNotFound)
	_, err = st.Load(t.Context(), theID, terms)
	wantError(t, "Load", err, ErrNotFound)
	if keys := s.Keys(t); !slices.Equal(keys, before) {
		t.Errorf("there are keys %q", keys)
	}
}

// P9: an ID that Redis does not know leaves no lock and is not adopted.
func TestUnknownIDLeavesNoTrace(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) { wantNotFound(t, s, process(t, s), Terms{}) })
}

// At the end of its lifetime a session has expired, even if Redis still has it because earlier terms were longer.
func TestLifetimeIsOver(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "1")
		terms := Terms{TTL: time.Minute, Lifetime: 20 * time.Minute}
		lapse(20*time.Minute - time.Millisecond)
		if _, err := st.Load(t.Context(), theID, terms); err != nil {
			t.Errorf("a millisecond before its end: %v", err)
		}
		s.Do(t, "PEXPIRE", theRecord, 60_000)
		lapse(time.Millisecond)
		wantNotFound(t, s, st, terms)
	})
}
