package middleware

import (
	"context"
	"errors"
	"fmt"

	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// touch extends the idle timeout of a session, for Session.Touch. It does not follow a session to a new ID: whoever
// was given an ID before a login must not be able to keep the session alive after it.
func (s *Sessions) touch(ctx context.Context, id string) error {
	err := s.store.Touch(ctx, id, s.terms)
	if hasEnded(err) {
		return fmt.Errorf("middleware: Touch: %w: %w", session.ErrEnded, err)
	}
	return err
}

// hasEnded reports whether err says that a session has ended, or that Redis has no trace of it. In that case it may
// have moved: after a minute only a watch that has followed the move knows, see hasMoved.
func hasEnded(err error) bool {
	return (errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound)) && !errors.Is(err, store.ErrMoved)
}

// TouchSession implements keep.Keeper. It does not wait for a commit: until that is done, the session counts as
// having its old ID.
func (rq *request) TouchSession(ctx context.Context) error {
	switch created, _ := rq.identity.stored(); {
	case created == 0: // nothing is stored
		return nil
	case rq.hasLeft() && context.Cause(&rq.context) == session.ErrEnded:
		// Without this, the error would only tell of a context that has ended.
		return fmt.Errorf("middleware: Touch: %w", rq.endedMeanwhile())
	case created == endedNow:
		return fmt.Errorf("middleware: Touch: %w: %w", session.ErrEnded, gone("session "+rq.identity.knownID()+" was ended by this request"))
	}
	err := rq.sessions.touch(ctx, rq.identity.knownID())
	if hasEnded(err) && rq.hasMoved() {
		return fmt.Errorf("middleware: Touch: %w", store.ErrMoved)
	}
	return err
}

// endedMeanwhile is the error of a request whose context has ended with its session.
func (rq *request) endedMeanwhile() error {
	return fmt.Errorf("%w: %w", session.ErrEnded, gone("session "+rq.identity.knownID()))
}

// TouchSession implements keep.Keeper. Update itself does not count as use, but its function may say that there was
// one.
func (u *update) TouchSession(ctx context.Context) error { return u.sessions.touch(ctx, u.id) }
