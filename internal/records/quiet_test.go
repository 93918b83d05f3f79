package records

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// quiet takes the session as a job does.
func quiet(t *testing.T, st *Engine, terms Terms) *Hold {
	t.Helper()
	terms.Quiet = true
	return takeBy(t, st, terms)
}

// P12: a job does not extend the idle timeout of a session, however the job ends. If the session
// would expire sooner, it outlasts the lock, and no more.
func TestAQuietHoldDoesNotProlongTheSession(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for _, left := range []time.Duration{5 * time.Minute, 5 * time.Second} { // the latter is taken by a script
			for name, end := range uses {
				s.Do(t, "FLUSHALL")
				create(t, st, "0")
				s.Do(t, "PEXPIRE", theRecord, left.Milliseconds())
				h := quiet(t, st, Terms{})
				wantExpiry(t, s, theRecord, max(left, patient.Lease+outlast))
				wantError(t, name, end(t.Context(), h), nil)
				wantExpiry(t, s, theRecord, max(left, patient.Lease+outlast))
				save(t, take(t, st), "2") // a visitor comes
				wantExpiry(t, s, theRecord, DefaultTTL)
			}
		}
	})
}

// A visitor's request and a job follow one another, in either order, and one round trip may commit
// both. The session has the visitor's timeout. A job that gives up does not extend the session
// either.
func TestAJobDoesNotTakeTheVisitorsTime(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		for _, jobFirst := range []bool{false, true} {
			first := take(t, d.st)
			if jobFirst {
				first.Release(t.Context())
				first = quiet(t, d.st, Terms{})
			}
			second := guests(t, d.st, 1, Terms{Quiet: !jobFirst})[0]
			d.Do(t, "PEXPIRE", theRecord, (5 * time.Minute).Milliseconds())
			saved := saving(t, first, "1")
			save(t, second.holds(t, "1"), "2")
			wantError(t, "Save", saved.wait(), nil)
			wantExpiry(t, d.Server, theRecord, DefaultTTL)
		}
		first := take(t, d.st)
		job := guests(t, d.st, 1, Terms{Quiet: true})[0]
		save(t, first, "1")
		held := job.holds(t, "1")
		const left = 5 * time.Minute // since the visitor has gone
		d.Do(t, "PEXPIRE", theRecord, left.Milliseconds())
		held.Release(t.Context())
		wantExpiry(t, d.Server, theRecord, left)
	})
}

// Peek changes nothing, whether the session is held, free or ended.
func TestPeek(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		peek := func(what string, want error) {
			t.Helper()
			before := stored(t, s)
			_, _, err := st.Peek(t.Context(), theID, Terms{})
			wantError(t, "Peek at "+what, err, want)
			if after := stored(t, s); after != before {
				t.Errorf("%s was %s, and is %s", what, before, after)
			}
		}
		peek("nothing", ErrNotFound)
		create(t, st, "0")
		h := take(t, st)
		peek("one that is held", nil)
		must(t, h.Destroy(t.Context()))
		peek("an ended one", ErrGone)
		s.Do(t, "SET", theRecord, "garbage")
		peek("garbage", ErrCorrupt)
	})
}

// Peek does not extend the session. It returns when the session ends, even if Redis does not tell:
// at its idle timeout, or at the end of its lifetime if that comes first.
func TestPeekKnowsOwnTimes(t *testing.T) {
	t.Parallel()
	terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		for name, tt := range ownTimes {
			r := recordOf(tt.idle, tt.until, tt.age)
			most := terms.left(&r, time.Now())
			for has, want := range map[time.Duration]time.Duration{0: tt.want, time.Minute: time.Minute, 1000 * time.Hour: most} {
				s.Do(t, "SET", theRecord, r.text(nil))
				if has > 0 {
					s.Do(t, "PEXPIRE", theRecord, has.Milliseconds())
				}
				got, expires, err := process(t, s).Peek(t.Context(), theID, terms)
				if left := time.Until(expires); err != nil || string(got.Data) != "1" || (left-want).Abs() > time.Millisecond {
					t.Errorf("%s, which Redis keeps for %v: %+v ends in %v, %v, want %v", name, has, got, left, err, want)
				}
				if has > 0 {
					wantExpiry(t, s, theRecord, has)
				}
			}
		}
	})
}

// Nor does a job extend a session with its own timeouts: a guest's, or a remembered one.
func TestAQuietHoldKeepsToTheSessionsOwnTimes(t *testing.T) {
	t.Parallel()
	terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, tt := range ownTimes {
			for use, end := range uses {
				for _, left := range []time.Duration{time.Minute, 5 * time.Second} { // the latter is taken by a script
					r := recordOf(tt.idle, tt.until, tt.age)
					s.Do(t, "SET", theRecord, r.text(nil), "PX", left.Milliseconds())
					h := quiet(t, process(t, s), terms)
					wantExpiry(t, s, theRecord, max(left, patient.Lease+outlast))
					wantError(t, use, end(t.Context(), h), nil)
					wantExpiry(t, s, theRecord, max(left, patient.Lease+outlast))
				}
			}
		}
	})
}
