package session

import (
	"context"
	"errors"
	"sync"
)

// ErrNoSession is the error of [Start] in a context that offers no session.
var ErrNoSession = errors.New("session: no session here: wrap the handler with middleware's Sessions.Handler, in another mode than None")

type contextKey struct{}

// slot is where a context keeps a session that is opened when it is asked for.
// Any other session is in the context itself.
type slot struct {
	mu   sync.Mutex // guards s; held while opening, so that one request opens one session
	s    *Session   // nil until opened
	open func(context.Context) (*Session, error)
}

// NewContext returns a copy of ctx that holds s.
func NewContext(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// NewLazyContext returns a copy of ctx in which [Start] opens a session with
// open, once. An open that fails is tried again by the next Start.
func NewLazyContext(ctx context.Context, open func(context.Context) (*Session, error)) context.Context {
	return context.WithValue(ctx, contextKey{}, &slot{open: open})
}

// FromContext returns the request's session.
//
// It panics where there is none, since that is a mistake in the program and not
// in the request: the handler is not wrapped by the middleware, its mode is
// None, or its mode is Lazy and [Start] was not called yet.
func FromContext(ctx context.Context) *Session {
	switch at := ctx.Value(contextKey{}).(type) {
	case *Session:
		return at
	case *slot:
		at.mu.Lock()
		defer at.mu.Unlock()
		if at.s == nil {
			panic("session: not started: in mode Lazy call session.Start(ctx) before session.FromContext(ctx)")
		}
		return at.s
	default:
		panic(ErrNoSession.Error())
	}
}

// Start returns the request's session, and opens it first where the mode is
// Lazy, which may wait for the session's lock. Its error is [ErrNoSession] where
// the context offers no session, or why it could not be opened.
//
// Pass a context derived from the request's.
func Start(ctx context.Context) (*Session, error) {
	switch at := ctx.Value(contextKey{}).(type) {
	case *Session:
		return at, nil
	case *slot:
		return at.start(ctx)
	default:
		return nil, ErrNoSession
	}
}

func (at *slot) start(ctx context.Context) (*Session, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.s != nil {
		return at.s, nil
	}
	s, err := at.open(ctx)
	if err != nil {
		return nil, err
	}
	at.s = s
	return s, nil
}
