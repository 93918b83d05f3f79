package session

import (
	"context"
	"errors"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// ErrNoSession is the error of [Start] in a context without a session: the handler is not wrapped by the middleware,
// or its mode is None.
var ErrNoSession = errors.New("session: no session here: wrap the handler with middleware's Sessions.Handler, in another mode than None")

// NewContext returns a copy of ctx that holds s, for tests of handlers. Discard in the handler reverts s to its
// content at this point.
func NewContext(ctx context.Context, s *Session) context.Context {
	s.give()
	return context.WithValue(ctx, keep.ContextKey{}, s)
}

// FromContext returns the request's session.
//
// It panics if there is none, since that is a mistake in the program and not in the request: the handler is
// not wrapped by the middleware, its mode is None, or its mode is Lazy and [Start] was not called yet.
func FromContext(ctx context.Context) *Session {
	switch at := ctx.Value(keep.ContextKey{}).(type) {
	case *Session:
		return at
	case *keep.Lazy:
		if s, started := at.Started().(*Session); started {
			return s
		}
		panic("session: not started: in mode Lazy call session.Start(ctx) before session.FromContext(ctx), or give the route another mode")
	default:
		panic(ErrNoSession.Error())
	}
}

// Start returns the request's session. In mode Lazy it opens the session first, and may wait for its lock. The
// error is [ErrNoSession] if the context offers no session, or says why the session could not be opened.
//
// Call Start before the response begins: afterwards it fails. Pass a context derived from the
// request's.
func Start(ctx context.Context) (*Session, error) {
	switch at := ctx.Value(keep.ContextKey{}).(type) {
	case *Session:
		return at, nil
	case *keep.Lazy:
		s, err := at.Start(ctx)
		if err != nil {
			return nil, err
		}
		return s.(*Session), nil
	default:
		return nil, ErrNoSession
	}
}
