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

// A Renew, and a login, in a session that was ended writes no record at all.
func TestARenewOfAnEndedSessionBeginsNone(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		id, next := login(t, st, "ann", 1), idOf(st, "ann", 2)
		h := takeID(t, st, id)
		endAll(t, st)
		wantError(t, "Renew", h.Renew(t.Context(), next, []byte("2")), ErrGone)
		if s.Exists(t, st.recordKey(next)) {
			t.Error("it has begun another session")
		}
	})
}

// An end survives what is evicted: of the record, the list and the mark any may be missing, and the
// session is over all the same, or the user is logged out. None comes back with the next login.
func TestEvictedKeysOfAUser(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for name, lost := range map[string]func(id string) []string{
			"the mark": func(id string) []string { return []string{st.keys(id)[markAt].(string)} },
			"the list": func(id string) []string { return []string{st.keys(id)[listAt].(string)} },
			"both":     func(id string) []string { return []string{st.keys(id)[markAt].(string), st.keys(id)[listAt].(string)} },
		} {
			s.Do(t, "FLUSHALL")
			ended, all := login(t, st, "ann", 1), []string{login(t, st, "ann", 2), login(t, st, "ann", 3)}
			must(t, st.End(t.Context(), ended))
			h := takeID(t, st, all[0])
			for _, key := range lost(ended) {
				s.Do(t, "DEL", key)
			}
			if listed, err := st.ListUser(t.Context(), "ann", Terms{}); len(listed) > 0 || err != nil {
				t.Errorf("without %s %d are listed, %v", name, len(listed), err)
			}
			wantError(t, "Save without "+name, h.Save(t.Context(), []byte("1")), ErrLost)
			wantAlive(t, st, login(t, st, "ann", 4), "0")
			for _, id := range append(all, ended) {
				wantOver(t, st, id)
			}
		}
	})
}
