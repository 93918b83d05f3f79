package session

import (
	"fmt"
	"unicode/utf8"
)

const maxUser = 512 // bytes, as the store has it

// Login gives the session to a user, and a new id, like [Session.Renew]: call it when the visitor
// has shown who they are. From the commit on the session is in that user's list, and can be ended
// from elsewhere, together with all others of the user: see Sessions.List, End and EndAll of
// package middleware. It stays the user's until it ends; a later Renew, or Clear, changes nothing
// about that, and a later Login gives it to another one. After [Session.Destroy] it does nothing, which
// is logged: to begin with nothing, call Clear.
//
// The user is what names one for the application, at best a number that never changes: 1 to 512
// bytes of UTF-8, which are kept with the session's values. Anything else is an error that sticks
// and fails the commit. So is, wrapping the store's ErrTooManySessions, a login beyond
// Options.MaxSessions where that says so.
func (s *Session) Login(user string) {
	s.mutate("Login", "", func() bool {
		if s.err == nil && (user == "" || len(user) > maxUser || !utf8.ValidString(user)) {
			s.err = fmt.Errorf("session: Login: a user must have 1 to %d bytes of valid UTF-8; this one has %d", maxUser, len(user))
			return false
		}
		s.change.Renewed, s.change.User = true, user
		s.change.DroppedLogin = s.change.Destroyed
		return true
	})
}

// User returns the user that the session belongs to, with what the handler has done so far; "" until
// Login.
func (s *Session) User() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return s.user()
}

func (s *Session) user() string {
	if s.change.User != "" {
		return s.change.User
	}
	return s.config.User
}
