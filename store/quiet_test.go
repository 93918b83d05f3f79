package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// What a job does to a session is no use of it: its idle timeout goes on, however the job ends, and
// whether or not the take was its first try.
func TestAQuietHoldDoesNotProlongTheSession(t *testing.T) {
	t.Parallel()
	large := `"` + string(make([]byte, 2*stagedFrom)) + `"`
	for name, end := range map[string]func(*testing.T, *Hold){
		"Save":         func(t *testing.T, h *Hold) { save(t, h, "1") },
		"Save, staged": func(t *testing.T, h *Hold) { save(t, h, large) },
		"Touch":        func(t *testing.T, h *Hold) { wantError(t, "Touch", h.Touch(t.Context()), nil) },
		"Release":      func(t *testing.T, h *Hold) { h.Release(t.Context()) },
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprint(name, waits), func(t *testing.T) {
				t.Parallel()
				eachFence(t, func(t *testing.T, s *site) {
					st, other := s.process(t), s.process(t)
					create(t, st, "0")
					if waits { // so that it is taken by a script
						h := take(t, other)
						time.AfterFunc(50*time.Millisecond, func() { h.Release(t.Context()) })
					}
					const left = 5 * time.Minute
					h := quiet(t, st)
					s.Do(t, "PEXPIRE", theRecord, left.Milliseconds())
					end(t, h)
					wantExpiry(t, s.Server, theRecord, left)
					save(t, take(t, st), "2") // a visitor comes
					wantExpiry(t, s.Server, theRecord, DefaultTTL)
				})
			})
		}
	}
}

func quiet(t *testing.T, st *Store) *Hold {
	t.Helper()
	h, err := st.Take(t.Context(), theID, Terms{Quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The take does not prolong it either, by a script or without, but it does not let it run out.
func TestAQuietTakeDoesNotProlongTheSession(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st, other := s.process(t), s.process(t)
		for _, left := range []time.Duration{20 * time.Minute, 5 * time.Second} {
			s.Do(t, "DEL", theRecord)
			create(t, st, "0")
			s.Do(t, "PEXPIRE", theRecord, left.Milliseconds())
			h := quiet(t, st)
			want := max(left, patient.Lease+outlast)
			if s.locks != s.Server {
				want = max(left, locker.DefaultLease+outlast)
			}
			wantExpiry(t, s.Server, theRecord, want)
			time.AfterFunc(30*time.Millisecond, func() { h.Release(t.Context()) })
			quiet(t, other).Release(t.Context()) // which had to wait
			if got := expiry(t, s.Server, theRecord); got > max(left, patient.Lease+outlast) {
				t.Errorf("expires in %v", got)
			}
		}
	})
}

// A visitor's request and a job follow one another, in either order, and an exchange may commit
// both. The session has the visitor's time.
func TestAJobDoesNotTakeTheVisitorsTime(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		for _, jobFirst := range []bool{false, true} {
			first := take(t, d.st)
			if jobFirst {
				first.Release(t.Context())
				first = quiet(t, d.st)
			}
			second := guests(t, d.st, 1, Terms{Quiet: !jobFirst})[0]
			d.Do(t, "PEXPIRE", theRecord, (5 * time.Minute).Milliseconds())
			saved := saving(t, first, "1")
			save(t, second.holds(t, "1"), "2")
			wantError(t, "Save", saved.wait(), nil)
			wantExpiry(t, d.Server, theRecord, DefaultTTL)
		}
	})
}

// A job that gives up has not used the session either, whoever had it before.
func TestAJobThatGivesUpDoesNotProlongTheSession(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
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

// To peek changes nothing, and says when the session ends: at its idle timeout, or at its lifetime
// if that is first.
func TestPeek(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "0")
		began := time.Now()
		for _, test := range []struct {
			left  time.Duration
			terms Terms
			want  time.Duration
		}{
			{5 * time.Minute, Terms{}, 5 * time.Minute},
			{25 * time.Hour, Terms{}, 24 * time.Hour},
			{time.Hour, Terms{TTL: 2 * time.Hour, Lifetime: 3 * time.Hour}, time.Hour},
			{time.Hour, Terms{TTL: time.Minute, Lifetime: 10 * time.Minute}, 10 * time.Minute},
		} {
			s.Do(t, "PEXPIRE", theRecord, test.left.Milliseconds())
			r, expires, err := st.Peek(t.Context(), theID, test.terms)
			if string(r.Data) != "0" || err != nil || r.Created.Sub(began).Abs() > time.Minute {
				t.Errorf("%+v, %v", r, err)
			}
			if off := expires.Sub(began) - test.want; off.Abs() > 30*time.Second {
				t.Errorf("it ends in %v, want %v", expires.Sub(began), test.want)
			}
			wantExpiry(t, s.Server, theRecord, test.left)
		}
		_, _, err := st.Peek(t.Context(), newID, Terms{})
		wantError(t, "Peek at nothing", err, ErrNotFound)
		h := take(t, st)
		if r, _, err := st.Peek(t.Context(), theID, Terms{}); string(r.Data) != "0" || err != nil {
			t.Errorf("beside a holder: %+v, %v", r, err)
		}
		wantError(t, "Destroy", h.Destroy(t.Context()), nil)
		_, _, err = st.Peek(t.Context(), theID, Terms{})
		wantError(t, "Peek at an ended one", err, ErrGone)
		s.Do(t, "SET", theRecord, "garbage")
		_, _, err = st.Peek(t.Context(), theID, Terms{})
		wantError(t, "Peek at garbage", err, ErrCorrupt)
	})
}

// Nor does a job lengthen what a session with timeouts of its own has left, a guest's or one that is
// remembered.
func TestAQuietHoldKeepsToTheSessionsOwnTimes(t *testing.T) {
	t.Parallel()
	terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour, Quiet: true}
	for name, tt := range ownTimes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachFence(t, func(t *testing.T, s *site) {
				for use, end := range map[string]func(*Hold) error{
					"Save":    func(h *Hold) error { return h.Save(t.Context(), []byte("2")) },
					"Touch":   func(h *Hold) error { return h.Touch(t.Context()) },
					"Release": func(h *Hold) error { h.Release(t.Context()); return nil },
				} {
					for _, left := range []time.Duration{time.Minute, 5 * time.Second} { // the latter is taken by a script
						r := recordOf(tt.idle, tt.until, tt.age)
						s.Do(t, "SET", theRecord, r.text(nil), "PX", left.Milliseconds())
						h, err := s.process(t).Take(t.Context(), theID, terms)
						if err != nil {
							t.Fatal(err)
						}
						most := max(left, patient.Lease+outlast, locker.DefaultLease+outlast)
						for _, doing := range []string{"Take", use} {
							if doing == use {
								wantError(t, use, end(h), nil)
							}
							if got := expiry(t, s.Server, theRecord); got > most {
								t.Errorf("after %s of a session with %v left it has %v", doing, left, got)
							}
						}
					}
				}
			})
		})
	}
}

// A look says when a session with timeouts of its own ends, also where Redis does not know.
func TestPeekKnowsOwnTimes(t *testing.T) {
	t.Parallel()
	terms := Terms{TTL: time.Hour, Lifetime: 10 * time.Hour}
	besideRecord(t, func(t *testing.T, s *site) {
		for name, tt := range ownTimes {
			r := recordOf(tt.idle, tt.until, tt.age)
			for _, set := range [][]any{{theRecord, r.text(nil)}, {theRecord, r.text(nil), "PX", tt.want.Milliseconds()},
				{theRecord, r.text(nil), "PX", (1000 * time.Hour).Milliseconds()}} {
				s.Do(t, "SET", set...)
				_, expires, err := s.process(t).Peek(t.Context(), theID, terms)
				want := time.Now().Add(tt.want)
				if len(set) == 4 && set[3] != tt.want.Milliseconds() {
					want = time.Now().Add(terms.left(&r, time.Now()))
				}
				if err != nil || expires.Sub(want).Abs() > 30*time.Second {
					t.Errorf("%s, %v: it ends at %v, %v, want %v", name, set[2:], expires, err, want)
				}
			}
		}
	})
}
