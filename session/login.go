package session

import (
	"cmp"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// Login gives the session to a user, and gives it a new ID, as [Session.Renew] does. Call Login when visitors have
// shown who they are. From the commit on the session is on the user's list, and can be ended from elsewhere,
// together with the user's other sessions: see Sessions.List, End and EndAll of package middleware. The session
// belongs to the user until it ends, also after a Renew or a Clear; a later Login gives it to another user. All
// Sessions on one store have the same users: see New of package middleware. After
// [Session.Destroy] Login does nothing, and a warning is logged: to begin with an empty session, call Clear.
//
// With a Login the session starts anew: the absolute timeout counts from it, and a [Session.Remember] that was saved before
// has no effect any more. A Remember that is saved together with the Login counts, whichever comes first. The values stay.
//
// user is the application's identifier of the user, 1 to 512 bytes of UTF-8; anything else is an error that sticks and
// fails the commit. The identifier should never change, so a number is a good choice. It is kept with the session's
// values. A login beyond Options.MaxSessions fails with the store's ErrTooManySessions if Options.RefuseLogin is set.
func (s *Session) Login(user string) {
	s.mutate("Login", "", func() bool {
		switch {
		case user == "" || len(user) > keep.MaxUser || !utf8.ValidString(user):
			s.err = cmp.Or(s.err, fmt.Errorf("session: Login: a user must have 1 to %d bytes of valid UTF-8; this one has %d", keep.MaxUser, len(user)))
			return false
		case s.change.Destroyed:
			s.change.DroppedLogin = true
			return false
		}
		s.change.Renewed, s.change.User, s.change.LoginTime = true, user, time.Now().Truncate(time.Millisecond)
		return true
	})
}

// User returns the user given to Login, or "" if nobody is logged in.
func (s *Session) User() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return s.user()
}

// LoginTime returns when the visitor logged in, to the millisecond: the time of the last Login. It is the zero time if
// nobody is logged in. It tells whether the login is fresh enough for what matters most, such as a new password:
//
//	if time.Since(s.LoginTime()) > 5*time.Minute {
//		http.Redirect(w, r, "/login", http.StatusSeeOther)
//		return
//	}
func (s *Session) LoginTime() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	if s.change.User != "" {
		return s.change.LoginTime
	}
	return s.config.LoginTime
}

func (s *Session) user() string {
	if s.change.User != "" {
		return s.change.User
	}
	return s.config.User
}
