package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A Redis that is full stores no record: what would change one fails and says why, and the
// session is as it was. All else works: sessions are taken, read, touched and ended.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	eachFenceReal(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		create(t, st, "before")
		h := take(t, st)
		s.Fill(t)
		refused := func(what string, err error) {
			t.Helper()
			wantError(t, what, err, ErrUnavailable)
			wantMessage(t, err, []string{"full", "OOM"})
			wantFree(t, s)
			wantData(t, s, "before")
		}
		refused("Save", h.Save(ctx, []byte("after")))
		refused("Save of much", take(t, st).Save(ctx, []byte(large("after"))))
		refused("Save of what was taken since", take(t, st).Save(ctx, []byte("after")))
		refused("Renew", take(t, st).Renew(ctx, newID, []byte("after")))
		refused("Create", st.Create(ctx, newID, []byte("1"), Terms{}))
		if s.Exists(t, newRecord) {
			t.Error("there is a record of the new id")
		}

		if err := take(t, st).Touch(ctx); err != nil {
			t.Errorf("Touch: %v", err)
		}
		take(t, st).Release(ctx)
		wantFree(t, s)
		wantData(t, s, "before")

		if err := take(t, st).Destroy(ctx); err != nil {
			t.Errorf("Destroy: %v", err)
		}
		wantFree(t, s)
		_, err := st.Take(ctx, theID, Terms{})
		wantError(t, "Take of what was ended", err, ErrGone)
		_, err = st.Load(ctx, theID, Terms{})
		wantError(t, "Load of what was ended", err, ErrGone)
		wantExpiry(t, s.Server, theRecord, tombstoneTime)

		s.Empty(t)
		if err := st.Create(ctx, newID, []byte("1"), Terms{}); err != nil {
			t.Errorf("Create, when there is memory again: %v", err)
		}
	})
}

// On a full Redis nobody logs in, and a user's sessions are listed and ended all the same: one, and all.
func TestFullRedisEndsUsersSessions(t *testing.T) {
	t.Parallel()
	eachFenceReal(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		one, two, three := login(t, st, "ann", 1), login(t, st, "ann", 2), login(t, st, "ann", 3)
		s.Fill(t)
		err := st.CreateRecord(ctx, idOf(st, "ann", 4), Record{Data: []byte("0"), Created: time.Now(), User: "ann"}, Terms{})
		wantError(t, "a login", err, ErrUnavailable)
		wantMessage(t, err, []string{"full", "OOM"})
		h, err := st.Take(ctx, one, Terms{})
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, "Renew", h.Renew(ctx, idOf(st, "ann", 5), []byte("1")), ErrUnavailable)
		wantListed(t, st, "ann", one, two, three)

		wantError(t, "End", st.End(ctx, one), nil)
		wantOver(t, st, one)
		wantAlive(t, st, two, "0")
		ended, err := st.EndUser(ctx, "ann", two)
		if len(ended) != 1 || err != nil {
			t.Errorf("EndUser = %q, %v", ended, err)
		}
		wantOver(t, st, three)
		wantAlive(t, st, two, "0")
		if _, err := st.EndUser(ctx, "ann"); err != nil {
			t.Error(err)
		}
		wantOver(t, st, two)
		s.Empty(t)
		wantAlive(t, st, login(t, st, "ann", 6), "0")
	})
}

// Processes that wait for a session are served in turn on a full Redis, too.
func TestFullRedisHandsOver(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	s := &site{r, r}
	st := s.process(t)
	create(t, st, "1")
	h := take(t, st)
	r.Fill(t)
	var waiting []*ending
	for n := 1; n <= 3; n++ {
		other := s.process(t)
		waiting = append(waiting, begin(func() error {
			h, err := other.Take(context.Background(), theID, Terms{LockWait: time.Minute})
			if err != nil {
				return err
			}
			return h.Touch(context.Background())
		}))
		eventually(t, "it is in the queue", func() bool {
			places, _ := r.Get(t, theQueue)
			return strings.Count(places, " ") == n
		})
	}
	if err := h.Touch(t.Context()); err != nil {
		t.Errorf("Touch: %v", err)
	}
	for _, e := range waiting {
		if err := e.wait(); err != nil {
			t.Error(err)
		}
	}
	wantFree(t, s)
}
