package store

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A destroyed id is dead at once, and remembered for a minute, whoever asks: a
// request that still comes with it is told that its session was ended.
func TestDestroyLeavesTombstone(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		create(t, st, "1")
		if err := take(t, st).Destroy(ctx); err != nil {
			t.Fatal(err)
		}
		wantGone(t, s, st)

		// Being asked for does not make it last longer.
		s.Do(t, "PEXPIRE", theRecord, 30_000)
		wantGone(t, s, st)
		if got := expiry(t, s.Server, theRecord); got > 30*time.Second {
			t.Errorf("the tombstone expires in %v", got)
		}
	})
}

// wantGone checks that the session was ended and that asking for it leaves no lock.
func wantGone(t *testing.T, s *site, st *Store) {
	t.Helper()
	before, _ := s.Get(t, theRecord)
	_, err := st.Take(t.Context(), theID, Terms{})
	wantError(t, "Take", err, ErrGone)
	_, err = st.Load(t.Context(), theID, Terms{})
	wantError(t, "Load", err, ErrGone)
	wantFree(t, s)
	if after, _ := s.Get(t, theRecord); after != before || !strings.Contains(after, `"gone":`) {
		t.Errorf("the tombstone was %s and is %s", before, after)
	}
	if got := expiry(t, s.Server, theRecord); got > time.Minute {
		t.Errorf("the tombstone expires in %v", got)
	}
}

// Who waits for a session while it is ended learns of its end.
func TestWaiterLearnsOfTheEnd(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		create(t, s.process(t), "1")
		h := take(t, s.process(t))
		waiter := s.process(t)
		learned := make(chan error)
		go func() {
			_, err := waiter.Take(t.Context(), theID, Terms{LockWait: time.Minute})
			learned <- err
		}()
		// No matter whether it waits already.
		if err := h.Destroy(t.Context()); err != nil {
			t.Error(err)
		}
		wantError(t, "Take", <-learned, ErrGone)
		wantFree(t, s)
	})
}

// An ended id cannot be used again, not even by chance.
func TestCreateNeverOverwrites(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		create(t, st, "1")
		err := st.Create(ctx, theID, []byte("2"), Terms{})
		wantError(t, "Create of a known id", err, ErrCorrupt)
		wantData(t, s, "1")
		if err := take(t, st).Destroy(ctx); err != nil {
			t.Fatal(err)
		}
		err = st.Create(ctx, theID, []byte("3"), Terms{})
		wantError(t, "Create of an ended id", err, ErrCorrupt)
		wantGone(t, s, st)
	})
}

// Renew moves the session to a new id: its data and its age go with it, the old
// id is dead.
func TestRenew(t *testing.T) {
	t.Parallel()
	const lifetime = 10 * time.Hour
	terms := Terms{TTL: lifetime, Lifetime: lifetime}
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		created := time.UnixMilli(time.Now().Add(-9 * time.Hour).UnixMilli())
		s.Do(t, "SET", theRecord, formatRecord("A", created, []byte("1")), "PX", 60_000)
		h, err := st.Take(ctx, theID, terms)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Renew(ctx, newID, []byte("2")); err != nil {
			t.Fatal(err)
		}
		wantGone(t, s, st)
		r, err := st.Load(ctx, newID, terms)
		if string(r.Data) != "2" || !r.Created.Equal(created) || err != nil {
			t.Errorf("the new id has %q of %v, %v; want %q of %v", r.Data, r.Created, err, "2", created)
		}
		wantExpiry(t, s.Server, newRecord, time.Hour) // what is left of its lifetime
	})
}

// An id that is in use already is not overwritten, and the old one lives on.
func TestRenewToKnownID(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "1")
		s.Do(t, "SET", newRecord, "another's")
		err := take(t, st).Renew(t.Context(), newID, []byte("2"))
		wantError(t, "Renew", err, ErrCorrupt)
		if got, _ := s.Get(t, newRecord); got != "another's" {
			t.Errorf("the other session is now %s", got)
		}
		wantData(t, s, "1")
		wantFree(t, s)
	})
}

// Ten years are 3e11 milliseconds: no script may turn them into 3.1536e+11.
func TestLongTerms(t *testing.T) {
	t.Parallel()
	const years = 10 * 365 * 24 * time.Hour
	terms := Terms{TTL: years, Lifetime: years}
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		if err := st.Create(ctx, theID, []byte("1"), terms); err != nil {
			t.Fatal(err)
		}
		wantExpiry(t, s.Server, theRecord, years)
		for what, use := range map[string]func(h *Hold) error{
			"Save":  func(h *Hold) error { return h.Save(ctx, []byte("2")) },
			"Touch": func(h *Hold) error { return h.Touch(ctx) },
			"Load":  func(h *Hold) error { h.Release(ctx); _, err := st.Load(ctx, theID, terms); return err },
		} {
			s.Do(t, "PEXPIRE", theRecord, 60_000)
			h, err := st.Take(ctx, theID, terms)
			if err != nil {
				t.Fatal(err)
			}
			if err := use(h); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			wantExpiry(t, s.Server, theRecord, years)
		}
	})
}

// Nothing in an id or in the data has a meaning to the scripts.
func TestAnyBytes(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		for i, id := range []string{"0", "1234567890", "007", "%d+", "a b", "é"} {
			for _, data := range []string{
				"\x00\x01\xfe\xff", `{"name":"Łukasz 🗝"}`, "{\"a\":\"b\r\n\"}", `","gone":1}`, `%w%d%%`, "123",
			} {
				s.Do(t, "DEL", "latchkey:{"+id+"}")
				if err := st.Create(ctx, id, []byte("1"), Terms{}); err != nil {
					t.Fatal(err)
				}
				h, err := st.Take(ctx, id, Terms{})
				if err != nil {
					t.Fatal(err)
				}
				if err := h.Save(ctx, []byte(data)); err != nil {
					t.Errorf("id %q: %v", id, err)
				}
				h, err = st.Take(ctx, id, Terms{})
				if err != nil || string(h.Record.Data) != data {
					t.Fatalf("id %q: saved %q, took %q, %v", id, data, h.Record.Data, err)
				}
				if err := h.Touch(ctx); err != nil {
					t.Errorf("id %q: %v", id, err)
				}
			}
			if n, _ := redis.Int(s.Do(t, "DBSIZE"), nil); n != i+1 {
				t.Errorf("%d keys, want %d: %q", n, i+1, s.Keys(t))
			}
		}
	})
}
