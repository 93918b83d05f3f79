package session

import (
	"context"
	"errors"
	"sync"
)

// ErrNoSession is the error of [Start] in a context that offers no session.
var ErrNoSession = errors.New("session: no session here: wrap the handler with middleware's Sessions.Handler, in another mode than None")

type contextKey struct{}

// A slot is what a context holds: a session, or how to open one.
type slot struct {
	mu   sync.Mutex // guards s; held while opening, so that one request opens one session
	s    *Session   // nil until opened
	open func(context.Context) (*Session, error)
}

// NewContext returns a copy of ctx that holds s: for tests of handlers.
func NewContext(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, contextKey{}, &slot{s: s})
}

// FromContext returns the request's session.
//
// It panics where there is none, since that is a mistake in the program and not
// in the request: the handler is not wrapped by the middleware, its mode is
// None, or its mode is Lazy and [Start] was not called yet.
func FromContext(ctx context.Context) *Session {
	at, ok := ctx.Value(contextKey{}).(*slot)
	if !ok {
		panic(ErrNoSession.Error())
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.s == nil {
		panic("session: not started: in mode Lazy call session.Start(ctx) before session.FromContext(ctx), or give the route another mode")
	}
	return at.s
}

// Start returns the request's session. In mode Lazy it opens it first, which may
// wait for the session's lock. Its error is [ErrNoSession] where the context offers
// no session, or why the session could not be opened.
//
// Pass a context derived from the request's.
func Start(ctx context.Context) (*Session, error) {
	at, ok := ctx.Value(contextKey{}).(*slot)
	if !ok {
		return nil, ErrNoSession
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.s == nil {
		s, err := at.open(ctx)
		if err != nil {
			return nil, err
		}
		at.s = s
	}
	return at.s, nil
}
