package records

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// These tests show what happens to existing sessions when Lifetime is changed, as REDIS.md describes it.

var (
	short = Terms{TTL: 30 * time.Minute, Lifetime: 2 * time.Hour}
	long  = Terms{TTL: 30 * time.Minute, Lifetime: 6 * time.Hour}
)

// useUntil uses sessions every ten minutes, and returns how long they live at most.
func useUntil(t *testing.T, st *Engine, began time.Time, until time.Duration, terms Terms, ids ...string) (lasted map[string]time.Duration) {
	t.Helper()
	lasted = make(map[string]time.Duration)
	for ; time.Since(began) < until; lapse(10 * time.Minute) {
		for _, id := range ids {
			h, _, err := st.Take(t.Context(), id, terms)
			switch {
			case err == nil:
				lasted[id] = time.Since(began).Round(time.Minute)
				must(t, h.Save(t.Context(), []byte("1")))
			case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrGone):
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
	}
	return lasted
}

// beginBy begins a session by these terms: ann's, if the ID is that of a user's session.
func beginBy(t *testing.T, st *Engine, id string, terms Terms) string {
	t.Helper()
	r := Record{Data: []byte("0"), Created: time.Now()}
	if _, _, ofUser := cutTag(id); ofUser {
		r = recordOfUser("ann")
	}
	must(t, st.CreateRecord(t.Context(), id, r, terms))
	return id
}

// Lifetime was raised. A guest's session has the new one. A user's session has the old one, and at most ten
// minutes more, unless it is renewed.
func TestALifetimeThatIsRaised(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		began := time.Now()
		guest, member, renewed := beginBy(t, st, theID, short), beginBy(t, st, idOf(st, "ann", 1), short), idOf(st, "bob", 2)
		r := recordOfUser("bob")
		must(t, st.CreateRecord(t.Context(), idOf(st, "bob", 1), r, short))
		h, _, err := st.Take(t.Context(), idOf(st, "bob", 1), long)
		must(t, err)
		must(t, h.Renew(t.Context(), renewed, []byte("1")))

		lasted := useUntil(t, st, began, long.Lifetime+time.Hour, long, guest, member, renewed)
		for id, want := range map[string]time.Duration{guest: long.Lifetime, member: short.Lifetime, renewed: long.Lifetime} {
			if got := lasted[id]; got < want-10*time.Minute || got > want+10*time.Minute {
				t.Errorf("%s lasted for %v, want %v", id, got, want)
			}
		}
	})
}

// If the user logs in again, the older session has the new Lifetime, too. But after the end of the old Lifetime,
// the next login takes the older session off the list: it is not shown, and does not count. EndUser still ends
// it.
func TestALifetimeThatIsRaisedForAUserWhoLogsInAgain(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		began := time.Now()
		old, next := beginBy(t, st, idOf(st, "ann", 1), short), beginBy(t, st, idOf(st, "ann", 2), long)
		wantListed(t, st, "ann", old, next)
		useUntil(t, st, began, short.Lifetime+30*time.Minute, long, old, next)
		wantAlive(t, st, old, "1")
		wantListed(t, st, "ann", old, next)
		last := beginBy(t, st, idOf(st, "ann", 3), long)
		wantListed(t, st, "ann", next, last)
		wantAlive(t, st, old, "1")
		endAll(t, st, next)
		wantOver(t, st, old)
		wantAlive(t, st, next, "1")
	})
}

// Lifetime was lowered. The new one counts for a session from the next time that it is used or listed.
func TestALifetimeThatIsLowered(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		began := time.Now()
		guest, member := beginBy(t, st, theID, long), beginBy(t, st, idOf(st, "ann", 1), long)
		lasted := useUntil(t, st, began, short.Lifetime+time.Minute, long, guest, member)
		if len(lasted) != 2 || lasted[member] != short.Lifetime {
			t.Fatalf("the sessions lasted for %v", lasted)
		}
		for _, id := range []string{guest, member} {
			_, _, err := st.Take(t.Context(), id, short)
			wantError(t, "Take", err, ErrNotFound)
			_, err = st.Load(t.Context(), id, short)
			wantError(t, "Load", err, ErrNotFound)
		}
		list, err := st.ListUser(t.Context(), "ann", short)
		if len(list) > 0 || err != nil {
			t.Errorf("listed: %v, %v", list, err)
		}
		// At the latest after a TTL the session does not count against MaxSessions either.
		refuse := short
		refuse.MaxSessions, refuse.RefuseLogin = 1, true
		lapse(short.TTL)
		wantError(t, "a login", tryLogin(t, st, 2, refuse), nil)
	})
}
