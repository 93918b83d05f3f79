package records

import (
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// loginOf begins the n-th session of a user with MaxSessions most. The later sessions end later.
func loginOf(t *testing.T, st *Engine, n, most int) (id string) {
	t.Helper()
	lapse(time.Millisecond)
	wantError(t, "a login", tryLogin(t, st, n, Terms{MaxSessions: most}), nil)
	id = idOf(st, "ann", n)
	claim(t, st, id)
	return id
}

// claim comes back with a session for the first time.
func claim(t *testing.T, st *Engine, id string) (ended []string) {
	t.Helper()
	r, err := st.Load(t.Context(), id, Terms{})
	must(t, err)
	ended, err = st.Claim(t.Context(), id, r)
	must(t, err)
	return ended
}

// With MaxSessions, a login ends the session that would expire first, or is refused. A Renew is not a login.
// Expired sessions do not count: since the user could not log out of them, they do not make a login fail. Nor do
// they make a login end a session in use.
func TestMaxSessions(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		refuse := Terms{MaxSessions: 3, RefuseLogin: true}
		first, idle, tablet := loginOf(t, st, 0, 3), loginOf(t, st, 1, 3), loginOf(t, st, 2, 3)
		s.Do(t, "DEL", st.recordKey(idle)) // as the idle timeout does
		laptop := loginOf(t, st, 3, 3)
		wantListed(t, st, "ann", first, tablet, laptop)
		phone := loginOf(t, st, 4, 3)
		wantListed(t, st, "ann", tablet, laptop, phone)
		wantOver(t, st, first)

		wantError(t, "a login too many", tryLogin(t, st, 5, refuse), ErrTooManySessions)
		_, err := st.Load(t.Context(), idOf(st, "ann", 5), Terms{})
		wantError(t, "Load of what was refused", err, ErrNotFound)
		h, _, err := st.Take(t.Context(), phone, refuse)
		wantError(t, "Take", err, nil)
		must(t, h.Renew(t.Context(), idOf(st, "ann", 6), []byte("0")))
		must(t, st.End(t.Context(), tablet))
		wantError(t, "a login after one has ended", tryLogin(t, st, 7, refuse), nil)
		s.Do(t, "DEL", st.recordKey(laptop))
		wantError(t, "a login after one has timed out", tryLogin(t, st, 8, refuse), nil)
		wantListed(t, st, "ann", idOf(st, "ann", 6), idOf(st, "ann", 7), idOf(st, "ann", 8))
	})
}

// Expired sessions do not count either if there are more sessions than one round trip asks for.
func TestMaxSessionsDoesNotCountWhatHasTimedOut(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		const most = 300
		terms := Terms{MaxSessions: most, RefuseLogin: true}
		for n := range most {
			wantError(t, "a login", tryLogin(t, st, n, terms), nil)
			claim(t, st, idOf(st, "ann", n))
		}
		wantError(t, "a login too many", tryLogin(t, st, most, terms), ErrTooManySessions)
		for _, n := range []int{7, most - 1} {
			s.Do(t, "DEL", st.recordKey(idOf(st, "ann", n)))
		}
		wantError(t, "a login in place of one that has timed out", tryLogin(t, st, most, terms), nil)
		wantError(t, "another", tryLogin(t, st, most+1, terms), nil)
		claim(t, st, idOf(st, "ann", most))
		claim(t, st, idOf(st, "ann", most+1))
		wantError(t, "and one too many", tryLogin(t, st, most+2, terms), ErrTooManySessions)
		wantAlive(t, st, idOf(st, "ann", 0), "0")
		wantAlive(t, st, idOf(st, "ann", most+1), "0")
	})
}

// Without MaxSessions, a user has at most a thousand sessions: the next login ends the one that would expire
// first.
func TestMaxSessionsByDefault(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for n := range DefaultMaxSessions {
			loginOf(t, st, n, 0)
		}
		wantAlive(t, st, idOf(st, "ann", 0), "0")
		loginOf(t, st, DefaultMaxSessions, 0)
		wantOver(t, st, idOf(st, "ann", 0))
		wantAlive(t, st, idOf(st, "ann", 1), "0")
		wantAlive(t, st, idOf(st, "ann", DefaultMaxSessions), "0")
	})
}

// Two logins at once end no more sessions than necessary, and neither ends the other in vain. The second login
// counts before the first has taken expired sessions off the list.
func TestTwoLoginsAtOnceEndNoMoreThanAreTooMany(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ most, idle, left int }{
		"one of three has timed out": {3, 1, 3},
		"only one may be there":      {1, 0, 1},
	} {
		t.Run(name, fakeTime(func(t *testing.T, s *redistest.Server) {
			st := process(t, s)
			var all []string
			for n := range c.most {
				all = append(all, loginOf(t, st, n, c.most))
			}
			for _, id := range all[c.most-c.idle:] {
				s.Do(t, "DEL", st.recordKey(id))
			}
			counted, done, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
			second := interrupt(t, s, func() { close(counted); <-done })
			first := interrupt(t, s, func() {
				go func() { defer close(over); loginOf(t, second, 11, c.most) }()
				<-counted
			})
			loginOf(t, first, 10, c.most)
			close(done)
			<-over
			all = append(all[:c.most-c.idle], idOf(st, "ann", 10), idOf(st, "ann", 11))
			wantListed(t, st, "ann", all[len(all)-c.left:]...)
		}))
	}
}

// A login succeeds even if its own session is ended before the login has ended the surplus.
func TestALoginThatIsEndedAtOnce(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		loginOf(t, st, 1, 1)
		second := interrupt(t, s, func() { must(t, st.End(t.Context(), idOf(st, "ann", 10))) })
		wantError(t, "a login", tryLogin(t, second, 10, Terms{MaxSessions: 1}), nil)
		wantOver(t, st, idOf(st, "ann", 10))
	})
}

// interrupt opens a store that calls do after its first round trip.
func interrupt(t *testing.T, s *redistest.Server, do func()) *Engine {
	return knowing(New(&interrupted{Client: transport.NewRedigo(s.Pool(t, 8), time.Minute), do: do}, patient))
}
