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
// deadline has passed, as inside an http.TimeoutHandler, the changes are not saved, since the client sees a
// failure.
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
// Responses are unchanged except for Set-Cookie, Vary and Cache-Control. The ResponseWriter that handlers
// get is always a Flusher, and it is a Hijacker if the connection can be taken over. If the underlying
// ResponseWriter lacks a feature, http.ResponseController returns http.ErrNotSupported. All its other
// methods are reachable.
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
//	     checker.verify          cookie_verify.go   verifies it, and derives the public id
//	    readAhead                readahead.go       reads a small body before the lock is acquired
//	    opening.choose           open.go            tries the cookies' ids, nearly always one
//	     opening.acquire         open.go            calls Engine.Take, which locks, and reads the record
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
// session's id, as at a login, are in id.go; what a login does with an id that has moved is in moved.go. The status of
// each error is in errors.go. The events of observers are in observer.go: observation.go notes those of a request,
// observation_collector.go takes what package records tells: round trips, waits, lost locks; backlog.go calls the
// observers, and queues what belongs to no request. Two Sessions around one handler are in nested.go, warnings of a wrong
// set-up in setup.go.
// Package internal/records continues from Engine.Take and Hold.SaveContent.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// Options of the middleware. All but Keys may be left out.
type Options struct {
	// Keys sign the cookie: one or more keys of at least 32 random bytes each, newest first. The first key
	// signs, all keys verify. To change keys without logging users out, first deploy the new key in the last
	// place, then move it to the front. Remove the old key after Lifetime, or after the longest Remember.
	Keys [][]byte
	// TTL is the idle timeout. Default 30 min.
	TTL time.Duration
	// Lifetime is the absolute timeout, counted from the session's creation or its last Login. A Renew does not
	// extend it. Default 24 h.
	Lifetime time.Duration
	// GuestTTL is the idle timeout of a guest's session, one that has had no Login or Renew. A short GuestTTL limits
	// how long a flood of new visitors fills Redis. Default TTL, which is also the longest.
	GuestTTL time.Duration
	// LockWait is the longest time that a request waits for its session. Then it is answered with 503.
	// Default 10 s.
	LockWait time.Duration
	// MaxHold is the longest time that a request may hold its session. Then the request's context ends with
	// store.ErrLost as the cause, the request can no longer save, and the next request gets the session.
	// Default 1 min, or store.Options.Lease if that is longer.
	MaxHold time.Duration
	// MaxWaiters is how many requests may wait for one session in this process. Any further request is answered
	// with 503 at once. Default 128.
	MaxWaiters int
	// MaxBytes is the largest encoded session. Default 1 MiB, which is generous: a session that
	// large costs a request tens of milliseconds.
	MaxBytes int
	// Buffer is how many bytes of a response are held back until the session is saved. A longer response
	// saves the session early. Default 64 KiB.
	Buffer int
	// Cookie is the pattern of two cookies: until Login or Renew a session has a guest's cookie, which has the Name,
	// and then a member's, which has the Name followed by "-login". Default: Name "__Host-session" and Secure, which
	// needs HTTPS; with a Name of your own, Secure is as you set it. Path "/" and SameSite=Lax unless set, HttpOnly
	// always. The cookie ends with the browser, unless MaxAge is set, which is in seconds and should be Lifetime.
	// [session.Session.Remember] does the same for a single session.
	Cookie http.Cookie
	// Token returns the session's token that a request carries, or "", for clients that keep no cookie.
	// [Bearer] is for Authorization headers. With Token, cookies are neither read nor set: the handler gives
	// the client the token that [Sessions.Token] returns. Of Cookie only the Name may be set, which is part of
	// the signed text. Responses vary by Authorization. If the token is elsewhere, add to Vary yourself. Token
	// may be called more than once for a request. Default: there is a cookie.
	Token func(*http.Request) string
	// MaxSessions is how many sessions a user may have, see [session.Session.Login]. A login beyond that number
	// ends the session that would expire first. With RefuseLogin the login fails instead, with
	// [store.ErrTooManySessions], and is answered with 403. But a session with which no request has come back since
	// its login is replaced first: the response to that login may have been lost. RefuseLogin without
	// MaxSessions is an error. Default 1,000: more than people need, and so few that a program that logs in again
	// and again, and keeps no cookie, does not harm other users.
	MaxSessions int
	RefuseLogin bool
	// Device says where a user logs in, such as the browser and the place, for [Sessions.List]. At most 256 bytes are
	// kept. Default: nothing.
	Device func(*http.Request) string
	// Hooks are called when sessions begin, get another id, or end. Default: none.
	Hooks Hooks
	// Mode says how to open a request's session. Default: Exclusive. A route may have its own mode, see
	// [Sessions.Exclusive].
	Mode func(*http.Request) Mode
	// Label says what a request is called while it holds its session: in Redis, and in the log lines and
	// errors of waiters. There a label is cut to 64 bytes, and characters that cannot be printed are replaced.
	// It must not contain secrets; a URL path may contain one. Default: the method, and the route's pattern if
	// it is known.
	Label func(*http.Request) string
	// OnError responds to a request whose session could not be opened or saved. Call WriteHeader with
	// Status(err) before writing a body: without it the response is a 200. Retry-After is set already if it
	// applies, and the error is logged. There is no session in OnError: session.FromContext panics, or returns
	// that of other Sessions around this one. Default: a line of plain text.
	OnError func(http.ResponseWriter, *http.Request, error)
	// OnCorrupt decides about a record that is damaged, of an unknown version or too large. If OnCorrupt
	// returns an error, the request fails with it. If OnCorrupt returns nil, an empty session without a user
	// replaces the record; if the old session had a user, the empty session gets a new ID. Default: the
	// request fails with the error that is passed to OnCorrupt.
	OnCorrupt func(*http.Request, error) error
	// Discard reports whether a response with this status, which the handler has chosen, means that the
	// handler's work has failed. If so, the handler's changes to the session, Renew and Destroy included, are not
	// saved, as after session.Discard. Discard is not called when the handler calls Commit. Discard is for frameworks
	// that respond to a panic themselves, inside the sessions:
	//
	//	Discard: func(status int) bool { return status >= 500 }
	//
	// Default: all changes are saved.
	Discard func(status int) bool
	// Observers are told what the sessions do, for metrics and traces. Default: none.
	Observers []Observer
	// Logger gets one line for each error, and at most ten lines of a kind in a second. The next line says how
	// many lines were left out. If the requests show that something is set up wrong, such as a Secure cookie over
	// plain HTTP, Logger gets a warning, once a minute at most. Default: slog.Default().
	Logger *slog.Logger
}

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
			rq.abandon("a panic")
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
		next.ServeHTTP(writer, r)
	}()
	rq.context.endContext(nil) // also ends a session.Start that still waits
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
	rq.base.MultipartForm = cmp.Or(rq.base.MultipartForm, r.MultipartForm)
	rq.base.Pattern = cmp.Or(rq.base.Pattern, r.Pattern)
	if r.Pattern != "" {
		rq.identity.setPattern(r.Pattern)
	}
}
