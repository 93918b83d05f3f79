package middleware

import (
	"context"

	"github.com/a2139e8d/latchkey/session"
)

type requestKey struct{}

// withRequest returns a copy of ctx that holds rq, and any that ctx holds already. They know of
// each other from then on.
func withRequest(ctx context.Context, rq *request) context.Context {
	rq.outer, _ = ctx.Value(requestKey{}).(*request)
	if rq.outer != nil {
		rq.sibling = rq.outer.inner.Swap(rq)
	}
	return context.WithValue(ctx, requestKey{}, rq)
}

// request returns the request that ctx holds and that is s's own, or nil.
func (s *Sessions) request(ctx context.Context) *request {
	rq, _ := ctx.Value(requestKey{}).(*request)
	for rq != nil && rq.sessions != s {
		rq = rq.outer
	}
	return rq
}

// FromContext returns the request's session that s has opened. It is for programs with two
// Sessions around one handler, where session.FromContext returns that of the inner ones. It panics
// where session.FromContext would.
func (s *Sessions) FromContext(ctx context.Context) *session.Session {
	rq := s.request(ctx)
	if rq == nil {
		panic(session.ErrNoSession.Error())
	}
	rq.mu.Lock()
	defer rq.mu.Unlock()
	if rq.session == nil {
		panic("middleware: not started: in mode Lazy give the route another mode, or call session.Start(ctx) if no other Sessions are in between")
	}
	return rq.session
}

// sharesCookie reports whether other Sessions around these use the same cookie.
func (rq *request) sharesCookie() bool {
	for outer := rq.outer; outer != nil; outer = outer.outer {
		if outer.sessions.cookies.pattern.Name == rq.sessions.cookies.pattern.Name {
			return true
		}
	}
	return false
}
