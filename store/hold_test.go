package store

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// The lock is the token of its holder, beside the record, while the session is
// held. Each way of giving it back removes it.
func TestLockKey(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for name, end := range ends {
			s.Do(t, "FLUSHALL")
			create(t, st, "1")
			created := time.Now().Truncate(time.Millisecond)
			h := take(t, st)
			if !h.Record.Created.Equal(created) || string(h.Record.Data) != "1" {
				t.Errorf("%s: it read %+v", name, h.Record)
			}
			if got, want := s.Keys(t), []string{theRecord, theLock}; !slices.Equal(got, want) {
				t.Errorf("%s: keys %q, want %q", name, got, want)
			}
			if token, _ := s.Get(t, theLock); !strings.HasPrefix(token, h.stamp+" ") {
				t.Errorf("%s: the lock is %q, the stamp %q", name, token, h.stamp)
			}
			wantExpiry(t, s, theLock, patient.Lease)
			wantError(t, name, end(t.Context(), h), nil)
			wantFree(t, s)
		}
	})
}

// wantNotFound checks that the session is unknown, and that nothing comes of asking for it: neither
// a lock nor a record. So an id that is forged costs nothing and cannot be planted.
func wantNotFound(t *testing.T, s *redistest.Server, st *Store, terms Terms) {
	t.Helper()
	before := s.Keys(t)
	_, err := st.Take(t.Context(), theID, terms)
	wantError(t, "Take", err, ErrNotFound)
	_, err = st.Load(t.Context(), theID, terms)
	wantError(t, "Load", err, ErrNotFound)
	if keys := s.Keys(t); !slices.Equal(keys, before) {
		t.Errorf("there are keys %q", keys)
	}
}

// P9: an id that Redis does not know takes no lock, and is not adopted.
func TestUnknownIDLeavesNoTrace(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) { wantNotFound(t, s, process(t, s), Terms{}) })
}

// At the end of its lifetime a session is over, also where Redis still has it
// because the terms were longer when it was written.
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
