package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/a2139e8d/latchkey/session"
)

// errUnknownMode is answered where Options.Mode returns something else than the modes below.
var errUnknownMode = errors.New("middleware: Options.Mode has returned a value that is no Mode")

// A Mode is how a request uses its session.
type Mode int

const (
	// Exclusive opens the session before the handler runs and keeps it locked until the commit.
	Exclusive Mode = iota
	// ReadOnly reads the session without a lock, in one round trip to Redis. It sees what was
	// last saved, waits for nobody, and makes nobody wait. A change is an error at the commit.
	ReadOnly
	// Optimistic runs the handler on what was last saved, like ReadOnly, and saves what it has
	// changed, if nobody else has changed the session or holds it: in one more round trip. Else the
	// session is taken as in mode Exclusive, and if another has changed it, the handler runs a
	// second time, on what is stored by then; nothing is left of the first time, but what it has
	// changed in the values of the request's context, and informational answers. So what must not
	// happen twice, such as a mail, belongs behind session.Commit, after which there is no second
	// time (but maybe an error: store.ErrConflict), or into another mode. For GET, HEAD, OPTIONS and
	// TRACE; another method is an error. A request with a body, or inside other Sessions, is
	// Exclusive.
	Optimistic
	// Lazy does nothing until the handler calls session.Start, and is Exclusive
	// from there on. A Start that fails may be repeated; all calls together wait
	// for at most LockWait, and those that come later try once.
	Lazy
	// None leaves the request alone: for static files and health checks.
	None
)

var modeNames = [...]string{Exclusive: "Exclusive", ReadOnly: "ReadOnly", Optimistic: "Optimistic", Lazy: "Lazy", None: "None"}

// String returns the mode's name.
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", int(m))
	}
	return modeNames[m]
}

var errLateMode = errors.New("middleware: the session was opened in another mode before its route was known. " +
	"Give the route's handler to an http.ServeMux that Sessions.Handler wraps directly, or let Options.Mode return Lazy, " +
	"or wrap only the routes, and not the whole application")

// Exclusive returns h with its session in mode Exclusive.
//
// This and the other four give one route a mode of its own:
//
//	mux.Handle("GET /cart", sessions.ReadOnly(showCart))
//	mux.Handle("POST /cart", addToCart)
//	http.ListenAndServe(":8080", sessions.Handler(mux))
//
// Around an http.ServeMux, Handler asks it for the route before it opens the session. It cannot
// see through other routers, nor through what is wrapped around the route: there, either let
// Options.Mode return Lazy, and the route's mode is what the session is then opened in (a route
// without one has to call session.Start); or wrap the routes alone, each in its mode, and leave
// Handler out. A route whose mode comes too late is answered with an error, unless its mode is the
// one that the session was opened in.
func (s *Sessions) Exclusive(h http.Handler) http.Handler { return &route{s, Exclusive, h} }

// ReadOnly returns h with its session in mode ReadOnly, see [Sessions.Exclusive].
func (s *Sessions) ReadOnly(h http.Handler) http.Handler { return &route{s, ReadOnly, h} }

// Optimistic returns h with its session in mode Optimistic, which is what a GET should be: it waits for
// nobody, and may write.
//
//	mux.Handle("GET /cart", sessions.Optimistic(showCart))
//
// Other methods than GET, HEAD, OPTIONS and TRACE are answered with an error. See [Sessions.Exclusive].
func (s *Sessions) Optimistic(h http.Handler) http.Handler { return &route{s, Optimistic, h} }

// Lazy returns h with its session in mode Lazy, see [Sessions.Exclusive].
func (s *Sessions) Lazy(h http.Handler) http.Handler { return &route{s, Lazy, h} }

// None returns h without a session, see [Sessions.Exclusive].
func (s *Sessions) None(h http.Handler) http.Handler { return &route{s, None, h} }

// A route is a handler with a mode of its own.
type route struct {
	sessions *Sessions
	mode     Mode
	next     http.Handler
}

func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := rt.sessions
	rq := s.request(r.Context())
	if rq == nil { // the route stands alone
		s.serve(w, r, rt.mode, r.Pattern, rt.next)
		return
	}
	if err := rq.enter(r, rt.mode); err != nil {
		s.answer(w, rq, err)
		return
	}
	rt.next.ServeHTTP(w, r)
}

// enter opens the session of a Lazy request in the mode of its route. A session that is open
// must be open in that mode.
func (rq *request) enter(r *http.Request, mode Mode) error {
	rq.mu.Lock()
	opened, was := rq.session != nil, rq.mode
	if was == Lazy && !opened && mode != None {
		rq.idMu.Lock()
		rq.mode = mode
		rq.idMu.Unlock()
	}
	rq.mu.Unlock()
	switch {
	case was == Lazy && !opened && (mode == Exclusive || mode == ReadOnly || mode == Optimistic):
		_, err := session.Start(ownSession{r.Context(), rq.lazy})
		return err
	case was == mode, was == Lazy && (mode == Exclusive || !opened), was == Exclusive && mode == Lazy:
		return nil
	}
	route := strings.TrimSpace("the route " + r.Pattern) // not every router sets it
	return fmt.Errorf("%w: %s is %v, its session was opened as %v", errLateMode, route, mode, was)
}

// An ownSession is a context in which session.Start finds the session of lazy. Other Sessions
// between a Lazy request and its route would else have put theirs in front of it.
type ownSession struct {
	context.Context
	lazy context.Context
}

func (c ownSession) Value(key any) any { return c.lazy.Value(key) }

// routeOf returns the mode of a request that comes in, and the pattern of its route as far as it
// is known by then: next is asked if it is an http.ServeMux.
func (s *Sessions) routeOf(next http.Handler, r *http.Request) (mode Mode, pattern string) {
	pattern = r.Pattern
	// For a CONNECT the mux may return a path, which may be a secret, instead of a pattern.
	if mux, ok := next.(*http.ServeMux); ok && r.Method != http.MethodConnect {
		var h http.Handler
		h, pattern = mux.Handler(r)
		if rt, ok := h.(*route); ok && rt.sessions == s {
			return rt.mode, pattern
		}
	}
	if s.options.Mode != nil {
		mode = s.options.Mode(r)
	}
	return mode, pattern
}
