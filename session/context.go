package session

import (
	"context"
	"errors"
	"sync"
)

// ErrNoSession is the error of [Start] in a context that offers no session.
var ErrNoSession = errors.New("session: no session here: wrap the handler with middleware's Sessions.Handler, in another mode than None")

type contextKey struct{}

// slot is where a context keeps its session, or the way to open it.
type slot struct {
	mu   sync.Mutex // guards s; held while opening, so that one request opens one session
	s    *Session
	open func(context.Context) (*Session, error)
}

// NewContext returns a copy of ctx that holds s.
func NewContext(ctx context.Context, s *Session) context.Context {
	return context.WithValue(ctx, contextKey{}, &slot{s: s})
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
	at, _ := ctx.Value(contextKey{}).(*slot)
	if at == nil {
		panic(ErrNoSession.Error())
	}
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.s == nil {
		panic("session: not started: in mode Lazy call session.Start(ctx) before session.FromContext(ctx)")
	}
	return at.s
}

// Start returns the request's session, and opens it first where the mode is
// Lazy, which may wait for the session's lock. Its error is [ErrNoSession] where
// the context offers no session, or why it could not be opened.
//
// Pass a context derived from the request's.
func Start(ctx context.Context) (*Session, error) {
	at, _ := ctx.Value(contextKey{}).(*slot)
	if at == nil {
		return nil, ErrNoSession
	}
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
