package session

import (
	"context"
	"errors"
	"fmt"
)

// ErrOpen is the error of [Session.Reopen] for a session that is open. Nothing has happened to it.
var ErrOpen = errors.New("the session is open already: Reopen is for after Commit")

var errDestroyed = errors.New("session: Reopen after Destroy: the session has ended")

// Reopen opens the session again after its commit, so that it can be changed: after slow work, for which
// [Session.Commit] has released it, or in a stream or a websocket, whose session was committed when the
// response began.
//
// Reopen waits for the lock as the request did when it began. Then the session holds what is stored now, perhaps
// by other requests, so read all values again. The next Commit or the end of the handler saves the session; until then
// other requests wait for it. In a request that only reads, Reopen reads again, and no request waits.
//
// If the session was ended meanwhile, the error wraps the store's ErrGone. If the session has expired, the error wraps
// ErrNotFound as well. If another request has given the session a new ID, by Login, Renew or Remember, the error wraps
// the store's ErrMoved: the session was not ended, but only requests with the new cookie can open it. Reopen also fails
// if opening a session would fail, or if ctx ends. After such an error the session is still closed, and Reopen may be
// called again. If the session is open, the error is [ErrOpen], and the session stays open.
//
// Reopen fails for good if the response is an error anyway: if the session was changed while it was closed, with
// [ErrClosed], or if a commit has failed before the response began, with the error of that commit. In a stream, Reopen may
// follow a commit that has failed.
//
// If the work must be
// saved even if the client has gone away, as after an upload, pass [context.WithoutCancel] of the request's context.
//
// After the response header has been sent, no cookie can be set. Then a commit that needs a cookie fails and saves
// nothing: a commit that would begin a session, would give it a new ID, or follows a Remember.
func (s *Session) Reopen(ctx context.Context) error {
	if s.keeper != nil {
		return s.keeper.ReopenSession(ctx)
	}
	// Nothing was stored: the session goes on with what its commit would have stored.
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closedBy == "":
		return ErrOpen
	case s.err != nil:
		return fmt.Errorf("session: Reopen after a commit that failed: %w", s.err)
	case s.change.Destroyed:
		return errDestroyed
	}
	c := s.config
	if !s.isNew() || s.values.Len() > 0 || s.change.User != "" {
		c.Data, c.Snapshot = nil, s.values.Snapshot()
	}
	if s.change.User != "" {
		c.User, c.LoginTime = s.change.User, s.change.LoginTime
	}
	if s.change.Remembered {
		c.Remembered = s.change.Remember > 0
	}
	return s.load(c)
}

// Discard undoes everything that was done to the session since it was opened or reopened: values, Renew, Login,
// Remember, Destroy, and the error of a Set that failed. What is done after Discard counts. Call it if the
// handler's work has failed, and its error response must not save half of that work.
//
// What a commit has saved stays: between a commit and a Reopen, Discard does nothing. So a handler may defer Discard, and
// call Commit if all is well, and once more if it has called Reopen.
func (s *Session) Discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closedBy != "":
	case s.given != nil:
		s.given()
	default:
		_ = s.load(s.config) // has no error, since it had none when the session was opened
	}
}

// give makes Discard go back to the content that a test has given the session.
func (s *Session) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keeper == nil && s.closedBy == "" {
		filled, change, err := s.values.Snapshot().Values(), s.change, s.err
		s.given = func() { s.values, s.change, s.err = filled, change, err }
	}
}
