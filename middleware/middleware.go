// Package middleware puts a locked session around an http.Handler.
//
//	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}})
//	...
//	http.ListenAndServe(":8080", sessions.Handler(mux))
//
// Handlers find the session with session.FromContext. A session that cannot be
// opened or saved is answered with an error: see [Status] and Options.OnError.
//
// # When the session is committed
//
// At the end of the handler, or earlier at the first of: session.Commit, Flush, Hijack, and a
// body that outgrows the buffer. From then on the session is closed and its lock free, so a
// stream or a long download holds nothing, until session.Reopen takes it again. A change that comes
// while it is closed cannot be saved any more; it is logged, and as long as nothing of the answer
// has left, that becomes an error: see session.ErrClosed. An answer that has begun is cut off, so that no client takes it for complete.
// Only one that the handler has already flushed whole is beyond that.
//
// A commit does not end with the request's context: if the client goes away in the middle of a
// request, its effect is saved nevertheless. The commit is bounded by the store's timeout. But if
// the request's own deadline is over by then, as inside an http.TimeoutHandler, its changes are not
// saved, since its client sees a failure.
//
// # What handlers see of it
//
// Answers look as they would without sessions, but for the cookie, Vary and Cache-Control. The
// ResponseWriter that handlers get is always a Flusher, and a Hijacker where the connection can be
// taken over. Where the one around it cannot do what is asked, an http.ResponseController reports
// http.ErrNotSupported, and it finds all other methods.
// Two things work only around the sessions: http.MaxBytesReader, which closes the connection only
// through net/http's own writer (use http.MaxBytesHandler), and SetReadDeadline for a small body,
// which is read before the handler runs.
package middleware

// The way of one exclusive request, from top to bottom:
//
//	Sessions.Handler       middleware.go
//	 routeOf               route.go       asks the mux for the route, which may have a mode
//	 Sessions.serve        middleware.go
//	  response.run         middleware.go   a second time where mode Optimistic wants it: optimistic.go,
//	                                       and draft.go for what the first one does to its answer
//	  request.start        request.go
//	    cookies.read       cookie.go      finds the cookie
//	      checker.id       check.go       verifies it: secret, then public id
//	    readAhead          readahead.go   the client has sent its body before the lock is taken
//	    request.open       request.go
//	      request.fetch    fetch.go       tries the cookies' ids, nearly always one
//	        request.take   fetch.go       calls store.Take: locks, and reads the record
//	      keep.Open                       decodes it
//	  the handler                         uses the session through its request's context
//	    response.Write     write.go       is kept in a buffer, so that a failed commit
//	                                      can still be answered with an error
//	  response.finish      response.go
//	    response.begin     response.go    what Flush and Hijack (stream.go) call earlier
//	      commitToAnswer   commit.go      once, and after each Reopen (reopen.go);
//	                                      keep.Close says what changed
//	        carryOut       commit.go      does what decide (decide.go) says, here
//	                                      Hold.SaveContent: encodes and writes the record, and unlocks
//	      decorate         caching.go     the header, as it was at WriteHeader: adds the cookie
//	      send             response.go    the header, and what of the body was kept
//	    tail.release       tail.go        the end of a long answer waits for the handler's
//
// Package store continues from Store.Take and Hold.SaveContent. Which error becomes which
// status is in errors.go.

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// Options of the middleware. All but Keys may be left out.
type Options struct {
	// Keys sign the cookie: at least one of at least 32 random bytes, newest first. The first one
	// signs, all verify. To rotate without logging anybody out: deploy the new key behind the old
	// one, then before it, and drop the old one a Lifetime later, or as long as you remember sessions.
	Keys [][]byte
	// TTL is the idle timeout. Default 30 min.
	TTL time.Duration
	// Lifetime is the absolute timeout, counted from the session's creation;
	// a new id does not prolong it. Default 24 h.
	Lifetime time.Duration
	// GuestTTL is the idle timeout of a session that nobody has logged in to: until Login or Renew. A flood
	// of new visitors then fills Redis for that long only. Default TTL, which is also the longest.
	GuestTTL time.Duration
	// LockWait is the longest a request waits for its session; then it is
	// answered with 503. Default 10 s.
	LockWait time.Duration
	// MaxHold is the longest a request may keep its session to itself. Then its context ends with
	// store.ErrLost as the cause, it can no longer save, and the next one gets the session.
	// Default 1 min.
	MaxHold time.Duration
	// MaxWaiters is how many requests may wait for one session in this process; the next gets 503
	// at once. Default 128.
	MaxWaiters int
	// MaxBytes is the largest encoded session. Default 1 MiB, which is generous: a session that
	// large costs a request tens of milliseconds.
	MaxBytes int
	// Buffer is how many bytes of an answer are held back until the session is
	// saved. A longer answer saves the session early. Default 64 KiB.
	Buffer int
	// Cookie is the pattern of the session's cookie. Without a Name: Name
	// "__Host-session" and Secure. Path "/" and SameSite=Lax unless set, HttpOnly
	// always. A MaxAge makes it outlive the browser; set it to Lifetime then. For single
	// sessions, session.Remember does that.
	Cookie http.Cookie
	// Token returns the session's token that a request carries, or "": for clients that are no
	// browsers, or keep no cookie. [Bearer] is for Authorization headers. Cookies are neither read
	// nor set then: the handler gives the client the token that [Sessions.Token] returns. Of Cookie
	// only the Name may be set, which is part of what is signed. Answers vary by Authorization; if
	// the token is elsewhere, add to Vary yourself. Token may be called more than once for a request.
	// Default: there is a cookie.
	Token func(*http.Request) string
	// MaxSessions is how many sessions a user may have, see session.Login. A login beyond that ends the
	// one that would end first; or with RefuseLogin it fails with store.ErrTooManySessions, and is
	// answered with 403; that without MaxSessions is an error. Default 1,000: more than people have, and
	// so few that a program which logs in again and again, and keeps no cookie, costs others nothing.
	MaxSessions int
	RefuseLogin bool
	// Device says where a user logs in, for [Sessions.List]: browser and place, say. At most 256
	// bytes are kept. Default: nothing.
	Device func(*http.Request) string
	// Hooks are called when sessions begin, get another id, or end. Default: none.
	Hooks Hooks
	// Mode says how to open a request's session. Default: Exclusive. A route may have a mode of
	// its own, see [Sessions.ReadOnly].
	Mode func(*http.Request) Mode
	// Label says what a request is called while it holds its session: in Redis, and in the log
	// lines and errors of those that wait for it. Put no secret into it, as a path may be one.
	// Default: the method, and the route's pattern where it is known.
	Label func(*http.Request) string
	// OnError answers a request whose session could not be opened or saved; the
	// status to use is Status(err). Retry-After is set already where it applies,
	// and the error is logged. Default: a line of plain text.
	OnError func(http.ResponseWriter, *http.Request, error)
	// OnCorrupt decides about a record that is damaged, of an unknown version or
	// too large: the error it returns is the answer; nil puts an empty session in
	// the record's place, which gets another id if it was a user's, and nobody is logged in to it.
	// Default: the error as it is.
	OnCorrupt func(*http.Request, error) error
	// Discard reports whether an answer with this status, which the handler has chosen, means that
	// its work has failed: then what it has done to the session, Renew and Destroy too, is not
	// saved, as by session.Discard. It is not asked where the handler calls Commit. It is for
	// frameworks that answer a panic themselves, inside the sessions:
	//
	//	Discard: func(status int) bool { return status >= 500 }
	//
	// Default: all is saved.
	Discard func(status int) bool
	// Logger gets one line for each error, and at most ten of a kind in a second: the next one
	// says how many were left out. Default: slog.Default().
	Logger *slog.Logger
}

// Sessions is the middleware. It is safe for use by any number of goroutines.
type Sessions struct {
	store   *records.Engine
	options Options
	terms   records.Terms
	cookies cookies
	damper  *damper
}

// New returns the middleware, or an error that names an option and the rule that it breaks.
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
	return &Sessions{store: engine, options: o, terms: terms, cookies: c, damper: new(damper)}, nil
}

// Handler returns next with a session in the context of each of its requests,
// where session.FromContext finds it. A handler that is wrapped twice by the same
// Sessions has one session.
func (s *Sessions) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mode, pattern := s.routeOf(next, r)
		// Taking the lock again would make the request wait for itself.
		if s.request(r.Context()) != nil {
			next.ServeHTTP(w, r)
			return
		}
		s.serve(w, r, mode, pattern, next)
	})
}

// serve answers a request whose session is not open yet.
func (s *Sessions) serve(w http.ResponseWriter, r *http.Request, mode Mode, pattern string, next http.Handler) {
	if mode == None {
		next.ServeHTTP(w, r)
		return
	}
	rw := &response{
		request: request{sessions: s, mode: mode, pattern: pattern, base: r, arrived: time.Now()},
		inner:   w,
		before:  snapshot(w.Header()),
		tail:    tail{declared: -1},
	}
	if rw.run(next) {
		rw.again().run(next)
	}
}

// run lets next answer. again: that has come to nothing, and is to be repeated; see optimistic.go.
func (rw *response) run(next http.Handler) (again bool) {
	rq := &rw.request
	rq.context.begin(rq)
	finished := false
	defer func() {
		if !finished { // the handler panicked, or called runtime.Goexit; or a Logger did in the commit
			rq.context.end(nil)
			rq.abandon()
			rw.abandon()
		}
	}()
	r, err := rq.start()
	if err != nil {
		finished = true
		rq.context.end(nil)
		rw.fail(err)
		return false
	}
	rw.draft = rw.newDraft()
	func() {
		defer rq.handBack(r)
		next.ServeHTTP(rw.writer(), r)
	}()
	rq.context.end(nil) // also ends a session.Start that still waits
	again = rw.finish()
	finished = true
	return again
}
