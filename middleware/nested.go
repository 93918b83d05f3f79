package middleware

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/a2139e8d/latchkey/session"
)

// # Two Sessions around one handler
//
// A program may wrap a handler with more than one Sessions: one for its visitors and one for its
// staff, say, each with a cookie of its own. Every one of them makes a request and a response for what
// comes in; the innermost are those that the handler sees. Nearly all of the package needs to know
// nothing of that. What does, is here:
//
//   - A request finds those around it by the context, and has the ones inside it as a list, since a
//     handler may call more than one handler.
//   - session.FromContext finds the innermost session, Sessions.FromContext any of them.
//   - A route's mode opens the session of its own Sessions, also if others are in between.
//   - A request fails after those inside have set their cookies: its error must not remove those.
//   - A handler does not run again for a request if those inside have saved something.
//   - Two Sessions with the same cookie would overwrite each other's, which is logged.
//   - Update and EndAll look at all requests of their caller.

// A nesting is the place of a request among those of other Sessions.
type nesting struct {
	outer   *request                // the one around it; nil if there is none
	sibling *request                // the one that outer had inside before this one
	inner   atomic.Pointer[request] // the latest inside it; nil if there is none
}

// nestIn makes rq the latest request inside outer. It logs it if other Sessions around these use the same
// cookie.
func (rq *request) nestIn(outer *request) {
	rq.outer = outer
	rq.sibling = outer.inner.Swap(rq)
	name, byToken := rq.sessions.cookies.pattern.Name, rq.sessions.cookies.token != nil
	for ; outer != nil && !byToken; outer = outer.outer {
		if outer.sessions.cookies.pattern.Name == name && outer.sessions.cookies.token == nil {
			rq.log(slog.LevelError, "shared_cookie", "two Sessions on one request use the same cookie and overwrite each other's: give each a name of its own",
				slog.String("cookie", name))
			return
		}
	}
}

// FromContext returns the request's session that s has opened. It is for programs with two
// Sessions around one handler, where session.FromContext returns that of the inner ones. It panics
// if session.FromContext would.
func (s *Sessions) FromContext(ctx context.Context) *session.Session {
	rq := s.requestOf(ctx)
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

// An ownSession is a context in which session.Start finds the session of lazy. Otherwise it would find
// that of other Sessions between a Lazy request and its route.
type ownSession struct {
	context.Context
	lazy context.Context
}

func (c ownSession) Value(key any) any { return c.lazy.Value(key) }

// committedCookies returns the cookie of the commits that have succeeded, if they have one, and
// those of other Sessions inside.
func (rq *request) committedCookies() (all []*http.Cookie) {
	rq.mu.Lock()
	if rq.cookie != nil && rq.sessions.cookies.token == nil {
		all = append(all, rq.cookie)
	}
	rq.mu.Unlock()
	for inner := rq.inner.Load(); inner != nil; inner = inner.sibling {
		all = append(all, inner.committedCookies()...)
	}
	return all
}

// savedInside reports whether other Sessions inside have saved something, or may have. Each of their
// handlers has returned.
func (rq *request) savedInside() bool {
	for inner := rq.inner.Load(); inner != nil; inner = inner.sibling {
		inner.mu.Lock()
		saved := inner.saved || inner.err != nil
		inner.mu.Unlock()
		if saved || inner.savedInside() {
			return true
		}
	}
	return false
}

// heldIn reports whether ctx is that of a handler that holds the session. If a request is just
// acquiring or releasing it, heldIn waits for the outcome.
func (s *Sessions) heldIn(ctx context.Context, id string) bool {
	rq, _ := ctx.Value(requestKey{}).(*request)
	for ; rq != nil; rq = rq.outer {
		if rq.sessions.store != s.store {
			continue
		}
		rq.mu.Lock()
		held := rq.hold != nil && rq.identity.knownID() == id
		rq.mu.Unlock()
		if held {
			return true
		}
	}
	return false
}
