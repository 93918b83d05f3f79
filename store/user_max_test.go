package store

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// loginOf begins the n-th session of a user who may have so many. The later ones end later.
func loginOf(t *testing.T, st *Store, n, most int) (id string) {
	t.Helper()
	id = idOf(st, "ann", n)
	born := time.Now().Add(time.Duration(n) * time.Second)
	record := Record{Data: []byte("0"), Created: born, User: "ann", Device: `Firefox, "Berlin"`}
	wantError(t, "a login", st.CreateRecord(t.Context(), id, record, Terms{MaxSessions: most}), nil)
	return id
}

// With MaxSessions the session that would end first makes room for a login, or the login is refused.
func TestMaxSessions(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		begin := func(n int, refuse bool) error {
			born := time.Now().Add(time.Duration(n) * time.Second)
			return st.CreateRecord(t.Context(), idOf(st, "ann", n), Record{Data: []byte("0"), Created: born, User: "ann"},
				Terms{MaxSessions: 2, RefuseLogin: refuse})
		}
		for n := range 3 {
			wantError(t, "a login", begin(n, false), nil)
		}
		wantOver(t, st, idOf(st, "ann", 0))
		wantAlive(t, st, idOf(st, "ann", 1), "0")
		wantError(t, "a login too many", begin(3, true), ErrTooManySessions)
		if _, err := st.Load(t.Context(), idOf(st, "ann", 3), Terms{}); !errors.Is(err, ErrNotFound) {
			t.Errorf("a login that was refused: %v", err)
		}
		h, err := st.Take(t.Context(), idOf(st, "ann", 2), Terms{MaxSessions: 2, RefuseLogin: true})
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, "Renew of one of two", h.Renew(t.Context(), idOf(st, "ann", 4), []byte("1")), nil)
		wantError(t, "End", st.End(t.Context(), idOf(st, "ann", 1)), nil)
		wantError(t, "a login after one has ended", begin(5, true), nil)
	})
}

// A login is not refused because of sessions that have timed out: nobody could log out there.
func TestMaxSessionsDoesNotCountWhatHasTimedOut(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		const most = 300 // more than are asked for at once
		terms := Terms{MaxSessions: most, RefuseLogin: true}
		begin := func(n int) error {
			return st.CreateRecord(t.Context(), idOf(st, "ann", n), Record{Data: []byte("0"), Created: time.Now(), User: "ann"}, terms)
		}
		for n := range most {
			wantError(t, "a login", begin(n), nil)
		}
		wantError(t, "a login too many", begin(most), ErrTooManySessions)
		for _, n := range []int{7, most - 1} {
			s.Do(t, "DEL", st.recordKey(idOf(st, "ann", n))) // as its idle timeout does
		}
		wantError(t, "a login in place of one that has timed out", begin(most), nil)
		wantError(t, "another", begin(most+1), nil)
		wantError(t, "and one too many", begin(most+2), ErrTooManySessions)
		wantAlive(t, st, idOf(st, "ann", 0), "0")
		wantAlive(t, st, idOf(st, "ann", most+1), "0")
	})
}

// Nor does a login end a session that is in use, as long as others have timed out.
func TestALoginEndsNoneThatIsInUseForThoseThatHaveTimedOut(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		begin := func(n int) string { return loginOf(t, st, n, 3) }
		used, idle, tablet := begin(0), begin(1), begin(2)
		s.Do(t, "DEL", st.recordKey(idle)) // as its idle timeout does
		laptop := begin(3)
		wantListed(t, st, "ann", used, tablet, laptop)
		phone := begin(4)
		wantListed(t, st, "ann", tablet, laptop, phone)
		wantOver(t, st, used)
	})
}

// A login into a session that has no time left is no error, and it is over at once.
func TestALoginOfASessionThatIsOver(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		id := idOf(st, "ann", 1)
		record := Record{Data: []byte("0"), Created: time.Now().Add(-48 * time.Hour), User: "ann"}
		wantError(t, "a login", st.CreateRecord(t.Context(), id, record, Terms{}), nil)
		eventually(t, "nothing is left", func() bool { return len(s.Keys(t)) == 0 })
		wantAlive(t, st, login(t, st, "ann", 2), "0")
	})
}

// Two logins at once end together as many sessions as are too many, and neither ends the other in vain:
// the second one counts before the first one has taken off the list what has timed out.
func TestTwoLoginsAtOnceEndNoMoreThanAreTooMany(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ most, idle, left int }{
		"one of three has timed out": {3, 1, 3},
		"only one may be there":      {1, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
				st := process(t, s)
				begin := func(st *Store, n int) string { return loginOf(t, st, n, c.most) }
				all := []string{}
				for n := range c.most {
					all = append(all, begin(st, n))
				}
				for _, id := range all[c.most-c.idle:] {
					s.Do(t, "DEL", st.recordKey(id)) // as its idle timeout does
				}
				counted, done, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
				second := NewOn(&interrupted{transport.NewRedigo(s.Pool(t, 8), time.Minute), func() { close(counted); <-done }}, patient)
				first := NewOn(&interrupted{transport.NewRedigo(s.Pool(t, 8), time.Minute), func() {
					go func() { defer close(over); begin(second, 11) }()
					<-counted
				}}, patient)
				begin(first, 10)
				close(done)
				<-over
				all = append(all[:c.most-c.idle], idOf(st, "ann", 10), idOf(st, "ann", 11))
				wantListed(t, st, "ann", all[len(all)-c.left:]...)
			})
		})
	}
}

// A login that another one ends, or End, before it has ended what is too many is no error: it was done.
func TestALoginThatIsEndedAtOnce(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(t *testing.T, st *Store, begin func(*Store, int) string){
		"by another login": func(_ *testing.T, st *Store, begin func(*Store, int) string) { begin(st, 11) },
		"by End": func(t *testing.T, st *Store, _ func(*Store, int) string) {
			wantError(t, "End", st.End(t.Context(), idOf(st, "ann", 10)), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
				st := process(t, s)
				begin := func(st *Store, n int) string { return loginOf(t, st, n, 1) }
				begin(st, 1)
				client := transport.NewRedigo(s.Pool(t, 8), time.Minute)
				id := begin(NewOn(&interrupted{client, func() { meanwhile(t, st, begin) }}, patient), 10)
				wantOver(t, st, id)
			})
		})
	}
}
