// Package middleware puts a locked session around an http.Handler.
//
// # The way of one request
//
//   - cookie.go: the cookie is verified and gives the secret, whose hash is the
//     public id. Anything else means "no session" and never reaches Redis.
//   - request.go: the session is opened, which takes its lock, before the handler
//     runs. readahead.go sees to it that the client has sent its body by then.
//   - commit.go: it is committed once, which gives the lock back.
//   - response.go: what the handler writes is kept in a buffer until the commit
//     has succeeded. So a failed commit can still be answered with an error.
//   - header.go: the header goes out as it was when the handler chose the status.
//   - stream.go: Flush and Hijack commit first.
//   - tail.go: the end of a long answer waits for the end of the handler.
//   - decide.go: what a commit has to do, as a pure function.
//   - errors.go: which error becomes which status.
//
// # When the session is committed
//
// At the end of the handler, or sooner at the first of: session.Commit, Flush,
// Hijack, and a body that outgrows the buffer. From then on the session is
// closed and its lock free, so a stream or a long download holds nothing. A
// change that comes later cannot be saved any more; it is logged, and the answer
// is cut off, so that no client takes it for complete. Only an answer that the
// handler has flushed whole is beyond that.
//
// A commit does not end with the request's context: whoever closes the browser
// in the middle of a request still has its effect saved. It is bounded by the
// store's time-out.
package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// Options of the middleware. All but Keys may be left out.
type Options struct {
	// Keys sign the cookie: at least one of at least 32 random bytes, newest
	// first. The first one signs, all verify. To rotate without logging
	// anybody out: deploy the new key behind the old one, then before it, and
	// drop the old one a Lifetime later.
	Keys [][]byte
	// TTL is the idle time-out. Default 30 min.
	TTL time.Duration
	// Lifetime is the absolute time-out, counted from the session's creation;
	// a new id does not prolong it. Default 24 h.
	Lifetime time.Duration
	// LockWait is the longest a request waits for its session; then it is
	// answered with 503. Default 10 s.
	LockWait time.Duration
	// MaxHold is the longest a request may keep its session to itself. Then its
	// context ends with store.ErrLost as the cause, it cannot save any more, and the
	// next one has the session. With a store.Options.Locker that one's own counts.
	// Default 1 min.
	MaxHold time.Duration
	// MaxWaiters is how many requests may wait for one session in this process;
	// the next is answered with 503 at once. Default 128.
	MaxWaiters int
	// MaxBytes is the largest encoded session. Default 1 MiB.
	MaxBytes int
	// Buffer is how many bytes of an answer are held back until the session is
	// saved. A longer answer saves the session early. Default 64 KiB.
	Buffer int
	// Cookie is the pattern of the session's cookie. Without a Name: Name
	// "__Host-session" and Secure. Path "/" and SameSite=Lax unless set, HttpOnly
	// always. A MaxAge makes it outlive the browser; set it to Lifetime then.
	Cookie http.Cookie
	// Mode tells how to open a request's session. Default: Exclusive.
	Mode func(*http.Request) Mode
	// OnError answers a request whose session could not be opened or saved; the
	// status to use is Status(err). Retry-After is set already where it applies,
	// and the error is logged. Default: a line of plain text.
	OnError func(http.ResponseWriter, *http.Request, error)
	// OnCorrupt decides about a record that is damaged, from a foreign version
	// or too large: the error it returns is the answer, and nil begins an empty
	// session in its place. Default: the error as it is.
	OnCorrupt func(*http.Request, error) error
	// Logger gets one line for each error. Default: slog.Default().
	Logger *slog.Logger
}

// Sessions is the middleware. It is safe for use by any number of goroutines.
type Sessions struct {
	store   *store.Store
	options Options
	terms   store.Terms
	cookies cookies
}

// New returns the middleware, or an error that names the option and the rule
// that it breaks.
func New(st *store.Store, o Options) (*Sessions, error) {
	if st == nil {
		return nil, errors.New("middleware: the store is nil")
	}
	if err := st.Err(); err != nil {
		return nil, err
	}
	s := &Sessions{store: st, options: o, terms: store.Terms{
		TTL: o.TTL, Lifetime: o.Lifetime, LockWait: o.LockWait,
		MaxHold: o.MaxHold, MaxWaiters: o.MaxWaiters, MaxBytes: o.MaxBytes,
	}}
	if err := st.Check(s.terms); err != nil {
		return nil, fmt.Errorf("middleware: Options.%w", err)
	}
	if o.Buffer < 0 {
		return nil, fmt.Errorf("middleware: Options.Buffer is %d: it must not be negative", o.Buffer)
	}
	if o.Buffer == 0 {
		s.options.Buffer = 64 << 10
	}
	var err error
	if s.cookies, err = newCookies(o); err != nil {
		return nil, err
	}
	s.options.Keys = nil // whoever prints s must not find them
	return s, nil
}

// Handler returns next with a session in the context of each of its requests,
// as session.FromContext finds it. A handler that is wrapped twice by the same
// Sessions has one session.
func (s *Sessions) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mode := Exclusive
		if s.options.Mode != nil {
			mode = s.options.Mode(r)
		}
		// Taking the lock again would make the request wait for itself.
		wrapped := r.Context().Value(s) != nil
		if mode == None || wrapped {
			next.ServeHTTP(w, r)
			return
		}
		s.serve(w, r, mode, next)
	})
}

func (s *Sessions) serve(w http.ResponseWriter, r *http.Request, mode Mode, next http.Handler) {
	ctx, cancel := context.WithCancelCause(context.WithValue(r.Context(), s, true))
	defer cancel(nil)
	rw := &response{
		request: request{sessions: s, mode: mode, base: r, cancel: cancel},
		inner:   w,
		before:  snapshot(w.Header()),
		length:  -1,
	}
	rq := &rw.request

	finished := false
	defer func() {
		if !finished { // the handler panicked, or called runtime.Goexit
			cancel(nil)
			rq.abandon()
			rw.abandon()
		}
	}()
	body := r.Body
	switch mode {
	case Lazy:
		ctx = session.NewLazyContext(ctx, func(ctx context.Context) (*session.Session, error) {
			rq.readCookie()
			return rq.open(ctx)
		})
	default:
		rq.readCookie()
		if rq.shown != "" && mode != ReadOnly {
			body = readAhead(r, s.options.Buffer)
		}
		opened, err := rq.open(ctx)
		if err != nil {
			finished = true
			rw.fail(err)
			return
		}
		ctx = session.NewContext(ctx, opened)
	}
	r = r.WithContext(ctx)
	r.Body = body
	defer rq.handBack(r)
	next.ServeHTTP(rw, r)
	finished = true
	cancel(nil) // also ends a session.Start that somebody still waits in
	rw.finish()
}
