package session

import (
	"context"
	"errors"
	"sync"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// ErrNoSession is the error of [Start] in a context that offers no session.
var ErrNoSession = errors.New("session: no session here: wrap the handler with middleware's Sessions.Handler, in another mode than None")

// A lazy is what a context holds of a session that is to be opened.
type lazy struct {
	mu   sync.Mutex // guards s; held while opening, so that one request opens one session
	s    *Session   // nil until opened
	open func(context.Context) (*Session, error)
}

// NewContext returns a copy of ctx that holds s: for tests of handlers. What s holds by then is
// what the handler's Discard goes back to.
func NewContext(ctx context.Context, s *Session) context.Context {
	s.give()
	return context.WithValue(ctx, keep.ContextKey{}, s)
}

// FromContext returns the request's session.
//
// It panics where there is none, since that is a mistake in the program and not
// in the request: the handler is not wrapped by the middleware, its mode is
// None, or its mode is Lazy and [Start] was not called yet.
func FromContext(ctx context.Context) *Session {
	switch at := ctx.Value(keep.ContextKey{}).(type) {
	case *Session:
		return at
	case *lazy:
		at.mu.Lock()
		defer at.mu.Unlock()
		if at.s == nil {
			panic("session: not started: in mode Lazy call session.Start(ctx) before session.FromContext(ctx), or give the route another mode")
		}
		return at.s
	default:
		panic(ErrNoSession.Error())
	}
}

// Start returns the request's session. In mode Lazy it opens it first, which may
// wait for the session's lock. Its error is [ErrNoSession] where the context offers
// no session, or why the session could not be opened.
//
// Pass a context derived from the request's.
func Start(ctx context.Context) (*Session, error) {
	switch at := ctx.Value(keep.ContextKey{}).(type) {
	case *Session:
		return at, nil
	case *lazy:
		return at.start(ctx)
	default:
		return nil, ErrNoSession
	}
}

func (l *lazy) start(ctx context.Context) (*Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.s == nil {
		s, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		l.s = s
	}
	return l.s, nil
}
