package records

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A full Redis stores no record. An operation that would write one fails, says why, and leaves the session
// unchanged. Everything else works. See also the suite for clients.
func TestFullRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	ctx, st := t.Context(), process(t, s)
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
	refused("Save of what was taken before", h.Save(ctx, []byte("after")))
	refused("Save of much", take(t, st).Save(ctx, []byte(large("after"))))
	refused("Create", st.Create(ctx, newID, []byte("1"), Terms{}))
	if s.Exists(t, newRecord) {
		t.Error("there is a record of the new ID")
	}

	must(t, take(t, st).Touch(ctx))
	wantFree(t, s)
	wantData(t, s, "before")
}

// On a full Redis logins fail, but a user's sessions can be listed and ended, one or all.
func TestFullRedisEndsUsersSessions(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	ctx, st := t.Context(), process(t, s)
	one, two, three := login(t, st, "ann", 1), login(t, st, "ann", 2), login(t, st, "ann", 3)
	s.Fill(t)
	err := st.CreateRecord(ctx, idOf(st, "ann", 4), Record{Data: []byte("0"), Created: time.Now(), User: "ann"}, Terms{})
	wantError(t, "a login", err, ErrUnavailable)
	wantMessage(t, err, []string{"full", "OOM"})
	wantError(t, "Renew", takeID(t, st, one).Renew(ctx, idOf(st, "ann", 5), []byte("1")), ErrUnavailable)
	wantListed(t, st, "ann", one, two, three)

	must(t, st.End(ctx, one))
	wantOver(t, st, one)
	wantAlive(t, st, two, "0")
	ended, err := st.EndUser(ctx, "ann", two)
	if len(ended) != 1 || err != nil {
		t.Errorf("EndUser = %q, %v", ended, err)
	}
	wantOver(t, st, three)
	wantAlive(t, st, two, "0")
	endAll(t, st)
	wantOver(t, st, two)
	s.Empty(t)
	wantAlive(t, st, login(t, st, "ann", 6), "0")
}

// If a full Redis refuses a commit, nothing is on its way any more: the lock is released once, and not again and again for a
// lease, which would be a load when Redis needs none.
func TestFullRedisIsSparedSweeps(t *testing.T) {
	atDesk(patient, func(t *testing.T, d *desk) {
		releases := 0
		d.st.runner.Observe(func(_ context.Context, x Exchange) {
			if x.Script == "release" && x.Status != "NOSCRIPT" {
				releases++
			}
		})
		h := take(t, d.st)
		d.Fake(func(r *fakeredis.Server) { r.Full = true })
		wantError(t, "Save", h.Save(t.Context(), []byte("after")), ErrUnavailable)
		time.Sleep(2 * patient.Lease)
		synctest.Wait()
		if releases != 1 {
			t.Errorf("the lock was released %d times", releases)
		}
		d.wantQuiet(t, "0")
	})(t)
}

// Redis refuses a commit because it is full. The processes that wait still get their turns at once,
// and pass the session on.
func TestFullRedisWhileProcessesWait(t *testing.T) {
	for name, end := range uses {
		t.Run(name, atDesk(patient, func(t *testing.T, d *desk) {
			h := take(t, d.st)
			var others []*guest
			for range 3 {
				others = append(others, guests(t, process(t, d.Server), 1, Terms{})...)
			}
			d.Fake(func(r *fakeredis.Server) { r.Full = true })
			begun := time.Now()
			if err := end(t.Context(), h); name == "Save" {
				wantError(t, name, err, ErrUnavailable)
			}
			for _, g := range others { // in the order in which they came
				wantError(t, "Touch", g.holds(t, "0").Touch(t.Context()), nil)
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("the turns took %v", took)
			}
			d.wantQuiet(t, "0")
		}))
	}
}
