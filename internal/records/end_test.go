package records

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A destroyed ID is dead at once, for all requests and all waiters. For a minute, a request with that ID learns
// that its session was ended. The ID cannot be used again.
func TestDestroyLeavesTombstone(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "1")
		h := take(t, st)
		waiting := append(guests(t, st, 1, Terms{}), guests(t, process(t, s), 1, Terms{})...)
		must(t, h.Destroy(t.Context()))
		for _, g := range waiting {
			<-g.came
			wantError(t, "Take of one that waited", g.err, ErrGone)
		}
		wantGone(t, s, st)

		// Requests with the ID do not extend the tombstone.
		lapse(30 * time.Second)
		wantGone(t, s, st)
		if got := expiry(t, s, theRecord); got > 30*time.Second {
			t.Errorf("the tombstone expires in %v", got)
		}
		wantError(t, "Create of an ended ID", st.Create(t.Context(), theID, []byte("3"), Terms{}), ErrCorrupt)
		wantGone(t, s, st)
	})
}

// However many requests wait for a session that has ended, only the first of each process asks Redis. All get its
// answer.
func TestThoseThatWaitForAnEndedSessionLearnItTogether(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		learn(t, s)
		st, tap := tapped(t, s, patient)
		create(t, st, "1")
		h := take(t, st)
		waiting := guests(t, st, 50, Terms{})
		tap.Forget()
		must(t, h.Destroy(t.Context()))
		for _, g := range waiting {
			<-g.came
			wantError(t, "Take of one that waited", g.err, ErrGone)
		}
		if n := tap.RoundTrips(); n > 3 { // the end, and a take with its script
			t.Errorf("%d round trips, including the one that ended the session", n)
		}
	})
}

// wantGone checks that the session was ended, and that a take of it leaves no lock.
func wantGone(t *testing.T, s *redistest.Server, st *Engine) {
	t.Helper()
	before, _ := s.Get(t, theRecord)
	_, _, err := st.Take(t.Context(), theID, Terms{})
	wantError(t, "Take", err, ErrGone)
	_, err = st.Load(t.Context(), theID, Terms{TTL: time.Hour, Lifetime: DefaultLifetime})
	wantError(t, "Load", err, ErrGone)
	wantFree(t, s)
	if after, _ := s.Get(t, theRecord); after != before || !strings.Contains(after, `"gone":`) {
		t.Errorf("the tombstone was %s and is %s", before, after)
	}
	if got := expiry(t, s, theRecord); got > time.Minute {
		t.Errorf("the tombstone expires in %v", got)
	}
}

// A logout whose session another request has ended meanwhile learns that the session is gone, as it wanted, and not
// that the lock was lost.
func TestDestroyOfWhatAnotherHasEnded(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "0")
		h := take(t, st)
		must(t, process(t, s).End(t.Context(), theID))
		err := h.Destroy(t.Context())
		if wantError(t, "Destroy", err, ErrGone); errors.Is(err, ErrLost) {
			t.Errorf("Destroy: %v", err)
		}
		wantGone(t, s, st)
	})
}

// Create and Renew refuse an ID that is in use, and change nothing.
func TestCreateNeverOverwrites(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "1")
		wantError(t, "Create", st.Create(t.Context(), theID, []byte("2"), Terms{}), ErrCorrupt)
		s.Do(t, "SET", newRecord, "another's")
		wantError(t, "Renew", take(t, st).Renew(t.Context(), newID, []byte("2")), ErrCorrupt)
		if got, _ := s.Get(t, newRecord); got != "another's" {
			t.Errorf("the other session is now %s", got)
		}
		wantData(t, s, "1")
		wantFree(t, s)
	})
}

// Renew moves the session to a new ID, with its data and its creation time. The old ID is dead.
func TestRenew(t *testing.T) {
	t.Parallel()
	const lifetime = 10 * time.Hour
	terms := Terms{TTL: lifetime, Lifetime: lifetime}
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		ctx, st := t.Context(), process(t, s)
		must(t, st.Create(ctx, theID, []byte("1"), terms))
		created := time.Now()
		lapse(9 * time.Hour)
		h := takeBy(t, st, terms)
		must(t, h.Renew(ctx, newID, []byte("2")))
		wantGone(t, s, st)
		r, err := st.Load(ctx, newID, terms)
		if string(r.Data) != "2" || !r.Created.Equal(created) || err != nil {
			t.Errorf("the new ID has %q of %v, %v; want %q of %v", r.Data, r.Created, err, "2", created)
		}
		wantExpiry(t, s, newRecord, time.Hour) // what is left of its lifetime
	})
}

// Ten years are 3e11 milliseconds: no script may turn them into 3.1536e+11.
func TestLongTerms(t *testing.T) {
	t.Parallel()
	const years = 10 * 365 * 24 * time.Hour
	terms := Terms{TTL: years, Lifetime: years}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, st := t.Context(), process(t, s)
		must(t, st.Create(ctx, theID, []byte("1"), terms))
		wantExpiry(t, s, theRecord, years)
		for what, use := range map[string]func(h *Hold) error{
			"Save":  func(h *Hold) error { return h.Save(ctx, []byte("2")) },
			"Touch": func(h *Hold) error { return h.Touch(ctx) },
			"Load":  func(h *Hold) error { h.Release(ctx); _, err := st.Load(ctx, theID, terms); return err },
		} {
			s.Do(t, "PEXPIRE", theRecord, 60_000)
			h := takeBy(t, st, terms)
			wantError(t, what, use(h), nil)
			wantExpiry(t, s, theRecord, years)
		}
	})
}

// No byte of an ID or of the data has a meaning for the scripts.
func TestAnyBytes(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx, st := t.Context(), process(t, s)
		for i, id := range []string{"0", "1234567890", "007", "%d+", "a b", "é"} {
			for _, data := range []string{
				"\x00\x01\xfe\xff", `{"name":"Łukasz 🗝"}`, "{\"a\":\"b\r\n\"}", `","gone":1}`, `%w%d%%`, "123",
			} {
				s.Do(t, "DEL", "latchkey:{"+id+"}")
				must(t, st.Create(ctx, id, []byte("1"), Terms{}))
				for _, want := range []string{"1", data} {
					h, _, err := st.Take(ctx, id, Terms{})
					if err != nil || string(h.Record.Data) != want {
						t.Fatalf("ID %q: took %q, %v, want %q", id, h.Record.Data, err, want)
					}
					must(t, h.Save(ctx, []byte(data)))
				}
			}
			if keys := s.Keys(t); len(keys) != i+1 {
				t.Errorf("%d keys, want %d: %q", len(keys), i+1, keys)
			}
		}
	})
}

// End leaves a key unchanged if it holds no session, whatever its type.
func TestEndLeavesWhatIsNoSession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for _, put := range [][]any{
			{"SET", theRecord, "garbage"},
			{"SET", theRecord, `{"v":3,"s":"ABCDEFGHIJKLMNOP","c":946684800000,"d":{}}`},
			{"SET", theRecord, `{"v":2,"s":"ABCDEFGHIJKLMNOP","x":1}`},
			{"LPUSH", theRecord, "garbage"},
		} {
			s.Do(t, put[0].(string), put[1:]...)
			wantError(t, "End", st.End(t.Context(), theID), ErrCorrupt)
			if put[0] == "LPUSH" {
				if n := s.Do(t, "LPUSH", theRecord, "more"); n != int64(2) {
					t.Errorf("the list has %v elements", n)
				}
			} else if text, _ := s.Get(t, theRecord); text != put[2] {
				t.Errorf("%q is %q now", put[2], text)
			}
			s.Do(t, "DEL", theRecord)
		}
	})
}
