// Package middleware gives each request its session: locked, so that the requests of one session run one after
// another, and saved before the response is sent.
//
//	st, err := store.Open("redis://127.0.0.1:6379", store.Options{})
//	...
//	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}, Mode: middleware.ByMethod})
//	...
//	http.ListenAndServe(":8080", sessions.Handler(mux))
//
// Handlers find the session with [session.FromContext]; package session says what they can do with it. If a session
// cannot be opened or saved, an error becomes the response: see [Status] and OnError in [Options].
//
// # Where to find what
//
//   - a whole program: the example of [New]
//   - timeouts, the cookie, tokens, logging: [Options]
//   - a GET should not wait, a poll should not count, a route needs no session: [Mode], [ByMethod], [Sessions.Passive]
//   - my devices, log out everywhere: [Sessions.List], [Sessions.End], [Sessions.EndAll]
//   - a job or a webhook changes a session: [Sessions.Update]
//   - an audit log: [Hooks]
//   - who holds a session, who waits, for how long: [Sessions.Debug], [Sessions.Requests]; metrics: [Observer]
//   - tests of handlers: package middleware/sessiontest
//   - recipes for logins, streams, frameworks and more: README.md beside this package
//
// # When the session is committed
//
// A session is committed when the handler returns, or earlier at the first of: [session.Session.Commit], Flush,
// Hijack, and a body that outgrows the buffer. Then the session is closed and its lock released, so a stream or a
// long download holds no session, until [session.Session.Reopen] locks the session again. A change to a closed
// session cannot be saved any more. The change is logged, and if the response has not begun, an error becomes the
// response: see [session.ErrClosed]. A response that has begun is cut off, so that no client takes it for complete.
// A response that was flushed completely cannot be cut off any more.
//
// A commit does not end with the request's context: if the client goes away in the middle of a request, the
// changes are saved nevertheless. The commit is bounded by the store's timeout. But if the request's own
// deadline has passed by then, as inside an http.TimeoutHandler, the changes are not saved, since the client sees a
// failure. A deadline that passes during the commit comes too late.
//
// # When the session ends
//
// Whatever ends the session, in whichever process, the context of every handler that has it open ends within two
// seconds, with [session.ErrEnded] as the cause: Destroy by another request, End, EndAll, MaxSessions, a timeout. That
// holds in every mode, and also after the commit, so it closes streams and websockets:
//
//	select {
//	case e := <-events:
//		fmt.Fprintf(w, "data: %s\n\n", e)
//	case <-r.Context().Done():
//		if context.Cause(r.Context()) == session.ErrEnded {
//			fmt.Fprint(w, "event: logout\ndata:\n\n")
//		}
//		return
//	}
//
// A websocket should be closed with the code 1008. An EventSource connects again by itself: the response should be a
// 204, or a 401, and not a redirect.
//
// A session with a new ID goes on, and so does the session of a guest who logs in. A Login as another user ends the
// session. The handler that ends its own session goes on. Only the handler's context is watched, and only until the
// handler returns. If Redis is unavailable, no context ends. A request that takes less than a second costs no command.
//
// An open stream does not count as use of its session: see [session.Session.Touch]. For requests that must not count,
// see [Sessions.Passive].
//
// # What handlers see
//
// Responses are unchanged except for Set-Cookie, Vary and Cache-Control. The ResponseWriter that handlers get is always
// a Flusher, and it is a Hijacker if the connection can be taken over. If the underlying ResponseWriter lacks a
// feature, http.ResponseController returns http.ErrNotSupported. All other methods of the underlying ResponseWriter are
// reachable by Unwrap.
//
// Two things work only around the sessions: http.MaxBytesReader, which closes the connection only
// through net/http's own writer (use http.MaxBytesHandler), and SetReadDeadline for a small body,
// which is read before the handler runs.
package middleware

// The way of one exclusive request, from top to bottom:
//
//	Sessions.Handler             middleware.go
//	Sessions.routeOf             mode.go            asks the mux for the route, which may have a mode
//	Sessions.serve               middleware.go
//	 response.run                middleware.go      a second time in mode Optimistic if another request has
//	                                                written: see optimistic.go
//	   request.open              open.go
//	    cookies.readIDs          cookie.go          finds the cookie
//	     checker.verify          cookie_verify.go   verifies it, and derives the public ID
//	    readAhead                readahead.go       reads a small body before the lock is acquired
//	    opening.choose           open.go            tries the cookies' IDs, nearly always one
//	     opening.acquire         open.go            calls Sessions.take, and so Engine.Take, which locks and reads the
//	                                                record
//	    opening.decode           open.go            makes the record a session
//	    request.watch            watch.go           from now on, the end of the session ends the handler's context
//	   the handler                                  uses the session through its request's context
//	    response.Write           write.go           keeps the body in a buffer, so that an error can still
//	                                                replace it if the commit fails
//	   response.beginResponse    response.go        Flush and Hijack (stream.go) call it earlier
//	    request.commit           commit.go          once, and after each Reopen (reopen.go)
//	     commit.closeSession     commit.go          closes the session, which says what has changed
//	     commit.carryOut         commit.go          calls Hold.SaveContent, which writes the record, and unlocks
//	      decide                 commit_action.go   chooses the action
//	    response.decorate        caching.go         adds the cookie to the header as it was at WriteHeader
//	    response.sendBuffered    response.go        sends the header, and the buffer
//	  request.leaveWatch         watch.go
//
// cookie.go tells of guests and members, commit_action.go which commits are refused. Commits that begin or end a
// session's ID, as at a login, are in commit_id.go; what a login does with an ID that has moved is in moved.go. The
// status of each error is in errors.go. The events of observers are in observer.go: observation.go collects those of a
// request, from what the request notes itself (observation_notes.go) and from what package records tells
// (observation_collector.go): round trips, waits, lost locks. backlog.go calls the observers, and queues what belongs to
// no request. Two Sessions around one handler are in nested.go, warnings of a wrong set-up in setup.go. Package
// internal/records continues from Engine.Take and Hold.SaveContent.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// Sessions is the middleware. It is safe for use by any number of goroutines.
type Sessions struct {
	store   *records.Engine
	options Options
	terms   records.Terms
	cookies cookies
	dead    *deadIDs
	damper  *damper
	watch   *watch

	backlogs []*backlog // one for each observer

	mistakes       *damper      // of the warnings in setup.go
	secureOverHTTP *atomic.Bool // a Secure cookie has come over plain HTTP
}

// New returns the middleware, or an error that names an option and the rule that it breaks.
//
// All Sessions on one store have the same users. If user 1 of one is a different person from user 1 of the other, as
// with customers and staff, [Sessions.List], [Sessions.EndAll] and Options.MaxSessions mix the two. Then give each
// Sessions its own store, with its own Prefix.
//
// Sessions with Options.Observers live as long as their store, which tells the observers of what belongs to no request.
// So call New once, and not for each tenant or reload.
func New(st *store.Store, o Options) (*Sessions, error) {
	if st == nil {
		return nil, errors.New("middleware: the store is nil")
	}
	engine := records.Of(st)
	if err := engine.Err(); err != nil {
		return nil, err
	}
	o.LockWait = cmp.Or(o.LockWait, 10*time.Second)
	o.Buffer = cmp.Or(o.Buffer, 64<<10)
	terms := records.Terms{TTL: cmp.Or(o.TTL, records.DefaultTTL), Lifetime: cmp.Or(o.Lifetime, records.DefaultLifetime),
		GuestTTL: o.GuestTTL, LockWait: o.LockWait, MaxHold: o.MaxHold, MaxWaiters: o.MaxWaiters, MaxBytes: o.MaxBytes,
		MaxSessions: o.MaxSessions, RefuseLogin: o.RefuseLogin}
	if err := terms.Check(); err != nil {
		return nil, fmt.Errorf("middleware: Options.%w", err)
	}
	if o.Buffer < 0 {
		return nil, fmt.Errorf("middleware: Options.Buffer is %d: it must not be negative", o.Buffer)
	}
	c, err := newCookies(o)
	if err != nil {
		return nil, err
	}
	o.Keys = nil // printing the Sessions must not show them
	s := &Sessions{store: engine, options: o, terms: terms, cookies: c, dead: new(deadIDs),
		damper: newDamper(10, time.Second), mistakes: newDamper(1, time.Minute), secureOverHTTP: new(atomic.Bool), watch: newWatch(engine, terms)}
	s.observeStore(o.Observers)
	return s, nil
}

// Handler returns next with a session in the context of each of its requests,
// where session.FromContext finds it. A handler that is wrapped twice by the same
// Sessions has one session.
func (s *Sessions) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rt, pattern := s.routeOf(next, r)
		// To acquire the lock again would make the request wait for itself.
		if s.requestOf(r.Context()) != nil {
			next.ServeHTTP(w, r)
			return
		}
		s.serve(w, r, rt, pattern)
	})
}

// serve serves a request whose session is not open yet.
func (s *Sessions) serve(w http.ResponseWriter, r *http.Request, rt route, pattern string) {
	mode, next := rt.mode, rt.next
	if mode == None {
		next.ServeHTTP(w, r)
		return
	}
	rw := s.newResponse(w, r, mode, withoutMethod(pattern))
	rw.request.passive = rt.passive
	if o := s.observe(r.Context(), rw.request.identity.arrived); o != nil {
		rw.request.seen, o.rq = o, &rw.request
		defer o.finish()
	}
	if mode < Exclusive || mode > Lazy {
		rw.replaceByError(fmt.Errorf("%w: %v", errUnknownMode, mode))
		return
	}
	rw.run(next)
	if rw.failed != nil && rw.request.runsAgain() { // see optimistic.go
		rw.request.context.restoreRouting()
		rw.secondResponse().run(next)
	}
}

// run opens the session, calls the handler, and finishes the response.
func (rw *response) run(next http.Handler) {
	rq := &rw.request
	rq.context.Context, rq.context.request = rq.base.Context(), rq
	finished := false
	defer rq.leaveWatch() // last, when neither a commit nor a Reopen can make it enter any more
	defer func() {
		if !finished { // the handler panicked, or called runtime.Goexit; or a Logger did in the commit
			defer rw.passThrough() // also if a hook panics
			rq.context.endContext(nil)
			if err := rq.abandon("a panic"); err != nil && rw.failed == nil {
				rq.logBeforePanic(err)
			}
		}
	}()
	if outer, ok := rq.base.Context().Value(requestKey{}).(*request); ok {
		rq.nestIn(outer)
	}
	ctx := context.Context(&rq.context)
	if rq.mode == Lazy {
		open := func(ctx context.Context) (any, error) { return rq.open(ctx, nil) }
		ctx = context.WithValue(ctx, keep.ContextKey{}, &keep.Lazy{Open: open})
		rq.lazy = ctx
	}
	r := rq.base.WithContext(ctx)
	if rq.lazy == nil {
		opened, err := rq.open(rq.storeContext(), r)
		if err != nil {
			finished = true
			rq.context.endContext(nil)
			rw.replaceByError(err)
			return
		}
		rq.context.session = opened
	}
	if rq.first != nil {
		rw.draft = rw.newDraft()
	}
	rq.context.mayRunAgain = rq.mayRunAgain()
	writer := http.ResponseWriter(rw)
	if offers[http.Hijacker](rw.around) {
		writer = hijackable{rw}
	}
	rq.seen.runs()
	func() {
		defer rq.copyBack(r)
		defer rq.context.endContext(nil) // first: it also ends a session.Start or Reopen that still waits, with mu held
		next.ServeHTTP(writer, r)
	}()
	if rw.begun || rw.failed != nil {
		rw.finishResponse()
	} else {
		_ = rw.beginResponse(handlerEnd) // an error has become the response
	}
	finished = true
}

// copyBack copies to the request that came in what was set in r, the handler's copy: net/http needs it to remove
// the temporary files of an upload, and loggers to show the pattern.
func (rq *request) copyBack(r *http.Request) {
	rq.mu.Lock() // options' functions get base with mu held, also from a goroutine of the handler that reopens the session
	defer rq.mu.Unlock()
	rq.base.MultipartForm = cmp.Or(rq.base.MultipartForm, r.MultipartForm)
	rq.base.Pattern = cmp.Or(rq.base.Pattern, r.Pattern)
	if pattern := patternOf(r); pattern != "" {
		rq.identity.setPattern(pattern)
	}
}
