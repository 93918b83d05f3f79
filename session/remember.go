package session

import (
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// Remember lets the session outlive the browser, for d from its commit, used or not: no other
// timeout ends it sooner, nor later. Call it at a login with "remember me", together with
// [Session.Login], and again whenever the time is to begin anew. A later Renew keeps the end.
//
//	s.Login(user)
//	s.Remember(30 * 24 * time.Hour)
//
// 0 takes that back: the timeouts are those of the options again, which count from the session's
// creation, and the browser forgets the session when it is closed. A negative d, or one of more than
// 400 days, for which no browser keeps a cookie, is an error that sticks and fails the commit. In a
// new session that stays empty there is nothing to be remembered. The session of a user gets a new
// id with it, as by Renew.
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

// Expires returns when the session ends if it is not used any more: by the timeouts as they are at
// the time of the call, with what the handler has done so far. It is zero for a session that is
// kept nowhere: one that was destroyed, or that a test has made.
func (s *Session) Expires() time.Time {
	s.mu.Lock()
	s.used = true
	c := s.change
	if s.sealed != "" {
		c = Change{} // the keeper knows what was saved
	}
	s.mu.Unlock()
	if s.config.Keeper == nil || c.Destroyed {
		return time.Time{}
	}
	return s.config.Keeper.SessionExpires(c.Renewed, c.User != "", c.Remembered, c.Remember)
}
