package store

import (
	"context"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The holder of a session that was ended is told so when its lease is renewed, by a third of it.
func TestALeaseOfAnEndedSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		const lease = 10 * time.Second
		st := New(s.Pool(t, 8), Options{Lease: lease, Timeout: patient.Timeout})
		for n, end := range []func(id string) error{
			func(id string) error { return st.End(t.Context(), id) },
			func(string) error { _, err := st.EndUser(t.Context(), "ann"); return err },
		} {
			id := login(t, st, "ann", n)
			h := takeID(t, st, id)
			lost := lossOf(t, h)
			wantError(t, "ending it", end(id), nil)
			lapse(lease / 2)
			wantError(t, "the cause", context.Cause(lost), ErrLost)
			h.Release(t.Context())
		}
	})
}

// What was read before the end is not saved after it without a lock either.
func TestSaveLoadedAfterTheEnd(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for n, but := range []string{idOf(st, "ann", 9), ""} { // one of them is alive
			login(t, st, "ann", 9+n)
			id := login(t, st, "ann", n)
			read, err := st.Load(t.Context(), id, Terms{})
			wantError(t, "Load", err, nil)
			endAll(t, st, but)
			_, err = st.SaveLoaded(t.Context(), id, read, text("1"), Terms{})
			wantError(t, "SaveLoaded", err, ErrConflict)
			wantOver(t, st, id)
		}
	})
}
