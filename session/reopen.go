package session

import (
	"context"
	"errors"
	"fmt"
)

// ErrOpen is the error of [Session.Reopen] for a session that is open. Nothing has happened to it.
var ErrOpen = errors.New("the session is open already: Reopen is for after Commit")

var errDestroyed = errors.New("session: Reopen after Destroy: the session is over")

// Reopen opens the session again after its commit, so that it can be changed: after slow work, say,
// for which [Session.Commit] has given it back, or in a stream or a websocket, whose session was
// committed when the answer began.
//
// It waits for the lock as the request did when it began, and the session then holds what is stored
// by now, maybe by other requests: what was read before must be read again. The session is saved by
// the next Commit, or at the end of the handler; until then other requests wait for it. In a request
// that only reads, Reopen reads again, and nobody waits.
//
// Where the session was ended meanwhile, the error wraps the store's ErrGone; where it has timed
// out, its ErrNotFound as well. Other errors are those of a request that cannot open its session,
// the end of ctx, and [ErrOpen]. After an error the session is as it was, closed; Reopen may be
// called again. If the client may have gone away and its work is to be saved all the same, as after
// an upload, pass [context.WithoutCancel] of the request's context.
//
// Once the answer has begun its header cannot take a cookie to the client any more. A commit that
// needs one, since it would begin a session, give it a new id, or follows a Remember, fails then and
// saves nothing.
func (s *Session) Reopen(ctx context.Context) error {
	if s.config.Keeper != nil {
		return s.config.Keeper.ReopenSession(ctx)
	}
	return s.reopen()
}

// reopen is Reopen of a session that is kept nowhere: what its commit would have stored is what it
// goes on with.
func (s *Session) reopen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.sealed == "":
		return ErrOpen
	case s.err != nil:
		return fmt.Errorf("session: Reopen after a commit that failed: %w", s.err)
	case s.change.Destroyed:
		return errDestroyed
	}
	if !s.isNew() || s.values.length > 0 {
		s.config.Data, s.config.Snapshot = nil, &Snapshot{s.values.share()}
	}
	s.config.User = s.user()
	if s.change.Remembered {
		s.config.Remembered = s.change.Remember > 0
	}
	s.unseal()
	return nil
}

// unseal is called with mu held.
func (s *Session) unseal() {
	s.sealed, s.given = "", nil
	s.reset()
}

// reset forgets what was done. It is called with mu held.
func (s *Session) reset() { s.change, s.culprit, s.err = Change{}, "", nil }

// Discard undoes all that was done to the session since it was opened, or reopened: values, Renew,
// Login, Remember, Destroy, and the error of a Set that has failed. What is done after it counts. Call it where the
// handler's work has failed, and an error is to be answered without saving half of it.
//
// What a commit has saved stays: after it, Discard does nothing. So a handler may defer Discard and
// Commit where all is well.
func (s *Session) Discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed != "" {
		return
	}
	s.reset()
	switch snapshot, ok := s.config.Snapshot.(*Snapshot); {
	case s.given != nil:
		s.values, s.change, s.err = s.given.values, s.given.change, s.given.err
	case ok:
		s.values = snapshot.values
	case s.config.Data != nil:
		s.values, _ = parse(s.config.Data) // as it was when it was opened
	default:
		s.values = values{}
	}
}

// given is what a test has filled a session with.
type given struct {
	values values
	change Change
	err    error
}

// give makes what the session holds what Discard goes back to.
func (s *Session) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Keeper == nil && s.sealed == "" {
		s.given = &given{s.values.share(), s.change, s.err}
	}
}
