package session

import (
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// Remember makes the session last for exactly d after its commit, even if the browser is closed or the session
// is not used. The idle and absolute timeouts no longer apply. Call it at a login with "remember me", together
// with [Session.Login], and again whenever the time should start anew. Once the end is saved, a Renew keeps it, and a
// Login does not.
//
//	s.Login(user)
//	s.Remember(30 * 24 * time.Hour)
//
// Remember(0) undoes Remember: the timeouts of the options apply again, and the browser forgets the session when it
// is closed. The absolute timeout then counts from the login or, without a login, from the session's creation. If it
// has passed already, the session ends at the commit.
//
// A negative d is an error that sticks and fails the commit. So is a d of more than 400 days, since no browser keeps
// a cookie for longer. Remember has no effect on a new session that stays empty. It gives the session of a user a new
// ID, as Renew does.
func (s *Session) Remember(d time.Duration) {
	s.mutate("Remember", "", func() bool {
		switch {
		case d >= 0 && d <= keep.LongestCookie:
			s.change.Remembered, s.change.Remember = d > 0 || s.config.Remembered, d
		case s.err == nil && d < 0:
			s.err = fmt.Errorf("session: Remember(%v): it must not be negative", d)
		case s.err == nil:
			s.err = fmt.Errorf("session: Remember(%v): it must be at most 400 days, since browsers keep no cookie for longer", d)
		}
		return false
	})
}

// Expires returns when the session will expire if it is not used again, including the effect of changes made so
// far. It returns the zero time for a session that is kept nowhere: a destroyed session, or one that a test has made.
func (s *Session) Expires() time.Time {
	s.mu.Lock()
	s.used = true
	c := s.change
	if s.closedBy != "" {
		c = keep.Change{} // the keeper knows what was saved
	}
	s.mu.Unlock()
	if s.keeper == nil || c.Destroyed {
		return time.Time{}
	}
	return s.keeper.SessionExpires(c)
}
