package middleware

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/a2139e8d/latchkey/session"
)

// # Two Sessions around one handler
//
// A program may wrap a handler with more than one Sessions: for example, one for visitors and one for staff,
// each with its own cookie. Each Sessions makes a request and a response for the request that comes in. The
// handler sees the innermost request and response. This file has nearly all code for such nesting:
//
//   - A request finds the requests around it by the context. It has a list of the requests inside it, since a
//     handler may call several handlers.
//   - session.FromContext finds the innermost session, Sessions.FromContext finds any session.
//   - A route's mode opens the session of the route's Sessions, even if other Sessions are in between.
//   - A request may fail after the requests inside it have set cookies. Its error must not remove these cookies.
//   - A handler does not run again for a request if a request inside it has saved something.
//   - Two Sessions that use the same cookie would overwrite each other's cookie, which is logged.
//   - Update and EndAll look at all requests of their caller.

// A nesting is the place of a request among the requests of other Sessions.
type nesting struct {
	outer   *request                // the request around this request, or nil
	sibling *request                // the previous request inside outer, or nil
	inner   atomic.Pointer[request] // the latest request inside this request, or nil
}

// nestIn makes rq the latest request inside outer. If other Sessions around rq use the same cookie, nestIn
// logs that.
func (rq *request) nestIn(outer *request) {
	rq.outer = outer
	rq.sibling = outer.inner.Swap(rq)
	own := &rq.sessions.cookies
	for ; outer != nil && own.token == nil; outer = outer.outer {
		its := &outer.sessions.cookies
		for _, name := range own.names {
			if its.token == nil && slices.Contains(its.names[:], name) {
				rq.log(slog.LevelError, "shared_cookie", "two Sessions on one request use the same cookie and overwrite each other's: give each cookie its own name",
					slog.String("cookie", name))
				return
			}
		}
	}
}

// FromContext returns the request's session that s has opened. It is for programs with two Sessions around one
// handler, in which session.FromContext returns the session of the inner Sessions. FromContext panics if
// session.FromContext would panic.
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

// An ownSession is a context in which session.Start finds the session of lazy. Otherwise session.Start would
// find the session of other Sessions between a Lazy request and its route.
type ownSession struct {
	context.Context
	lazy context.Context
}

func (c ownSession) Value(key any) any { return c.lazy.Value(key) }

// committedCookies returns the cookies of the commits that have succeeded, and those of other Sessions inside.
func (rq *request) committedCookies() (all []*http.Cookie) {
	rq.mu.Lock()
	if rq.sessions.cookies.token == nil {
		for _, cookie := range rq.cookies() {
			if cookie != nil {
				all = append(all, cookie)
			}
		}
	}
	rq.mu.Unlock()
	for inner := rq.inner.Load(); inner != nil; inner = inner.sibling {
		all = append(all, inner.committedCookies()...)
	}
	return all
}

// savedInside reports whether other Sessions inside have saved something, or may have. All their handlers have
// returned.
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

// requestsOn returns the requests that ctx belongs to, the innermost first, whose sessions are in the store of s.
func (s *Sessions) requestsOn(ctx context.Context) iter.Seq[*request] {
	return func(yield func(*request) bool) {
		rq, _ := ctx.Value(requestKey{}).(*request)
		for ; rq != nil; rq = rq.outer {
			if rq.sessions.store == s.store && !yield(rq) {
				return
			}
		}
	}
}

// heldIn reports whether ctx is the context of a handler that holds the session. If a request is just acquiring
// or releasing the session, heldIn waits for the outcome.
func (s *Sessions) heldIn(ctx context.Context, id string) bool {
	for rq := range s.requestsOn(ctx) {
		rq.mu.Lock()
		held := rq.hold != nil && rq.identity.knownID() == id
		rq.mu.Unlock()
		if held {
			return true
		}
	}
	return false
}
