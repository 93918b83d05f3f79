package store

import (
	"testing"
	"time"
)

// To look at a session with no terms neither prolongs nor shortens it, however long its own
// application keeps it.
func TestLoadWithoutTermsChangesNothing(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		st := s.process(t)
		for name, keeps := range map[string]Terms{
			"a short one": {TTL: time.Minute, Lifetime: time.Hour},
			"a long one":  {TTL: 30 * 24 * time.Hour, Lifetime: 365 * 24 * time.Hour},
		} {
			s.Do(t, "DEL", theRecord)
			if err := st.Create(t.Context(), theID, []byte("1"), keeps); err != nil {
				t.Fatal(err)
			}
			if r, err := st.Load(t.Context(), theID, Terms{}); string(r.Data) != "1" || err != nil {
				t.Errorf("%s: %q, %v", name, r.Data, err)
			}
			wantExpiry(t, s.Server, theRecord, keeps.TTL)
			if _, err := st.Load(t.Context(), theID, Terms{TTL: 2 * keeps.TTL, Lifetime: keeps.Lifetime}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wantExpiry(t, s.Server, theRecord, min(2*keeps.TTL, keeps.Lifetime))
		}
	})
}

// Nor does it call a session over that Redis still has: how long it may live is its
// application's to say.
func TestLoadWithoutTermsFindsAnOldSession(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		st := s.process(t)
		old := formatRecord("ABCDEFGHIJKLMNOPQRSTUVWXYZ", time.Now().Add(-48*time.Hour), []byte("1"))
		s.Do(t, "SET", theRecord, old, "PX", time.Hour.Milliseconds())
		if r, err := st.Load(t.Context(), theID, Terms{}); string(r.Data) != "1" || err != nil {
			t.Errorf("%q, %v", r.Data, err)
		}
		_, err := st.Load(t.Context(), theID, Terms{Lifetime: DefaultLifetime})
		wantError(t, "Load with a lifetime of a day", err, ErrNotFound)
	})
}
