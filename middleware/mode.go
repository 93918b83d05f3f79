package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/a2139e8d/latchkey/session"
)

// errUnknownMode becomes the response if Options.Mode returns none of the modes below.
var errUnknownMode = errors.New("middleware: Options.Mode has returned a value that is no Mode")

// A Mode is how a request uses its session.
type Mode int

const (
	// Exclusive opens the session before the handler runs and keeps it locked until the commit.
	Exclusive Mode = iota
	// ReadOnly reads the session without a lock, in one round trip to Redis. The handler sees what was last
	// saved. It neither waits for other requests nor makes them wait. A change is an error at the commit.
	ReadOnly
	// Optimistic runs the handler on what was last saved, like ReadOnly, and saves its changes in one more
	// round trip if no other request has changed or locked the session. Otherwise the session is locked as in
	// mode Exclusive. If another request has changed the session, the first run's changes and response are
	// discarded, and the handler runs again on the current data. Two effects of the first run stay: its
	// informational responses, and its changes to the values of the request's context. Side effects that must
	// not happen twice, such as mail, belong after a successful session.Commit, which may fail with
	// store.ErrConflict, or in a route with another mode. Optimistic is for GET, HEAD, OPTIONS and TRACE;
	// another method is an error. A request with a body, or inside other Sessions, is Exclusive.
	Optimistic
	// Lazy does nothing until the handler calls session.Start, and then acts like Exclusive. A Start that
	// fails may be repeated. All calls together wait for at most LockWait, and later calls try once.
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
// Exclusive, ReadOnly, Optimistic, Lazy and None each give one route its own mode:
//
//	mux.Handle("GET /cart", sessions.ReadOnly(showCart))
//	mux.Handle("POST /cart", addToCart)
//	http.ListenAndServe(":8080", sessions.Handler(mux))
//
// Around an http.ServeMux, Handler asks the mux for the route before it opens the session. Handler cannot
// see through other routers, nor through other handlers around the route. With these, either let Options.Mode
// return Lazy: the session is then opened in the route's mode, and a route without a mode must call
// session.Start. Or wrap the routes alone, each in its mode, and leave Handler out. If the session is
// already open in another mode, the response is an error.
func (s *Sessions) Exclusive(h http.Handler) http.Handler { return &route{s, Exclusive, h} }

// ReadOnly returns h with its session in mode ReadOnly, see [Sessions.Exclusive].
func (s *Sessions) ReadOnly(h http.Handler) http.Handler { return &route{s, ReadOnly, h} }

// Optimistic returns h with its session in mode Optimistic, which is what a GET should be: it does
// not wait for other requests, and may write.
//
//	mux.Handle("GET /cart", sessions.Optimistic(showCart))
//
// Another method than GET, HEAD, OPTIONS and TRACE is an error. See [Sessions.Exclusive].
func (s *Sessions) Optimistic(h http.Handler) http.Handler { return &route{s, Optimistic, h} }

// Lazy returns h with its session in mode Lazy, see [Sessions.Exclusive].
func (s *Sessions) Lazy(h http.Handler) http.Handler { return &route{s, Lazy, h} }

// None returns h without a session, see [Sessions.Exclusive].
func (s *Sessions) None(h http.Handler) http.Handler { return &route{s, None, h} }

// A route is a handler with its own mode.
type route struct {
	sessions *Sessions
	mode     Mode
	next     http.Handler
}

func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := rt.sessions
	rq := s.requestOf(r.Context())
	if rq == nil { // the route stands alone
		s.serve(w, r, rt.mode, r.Pattern, rt.next)
		return
	}
	if err := rq.openRoute(r, rt.mode); err != nil {
		s.respondError(w, rq, err)
		return
	}
	rt.next.ServeHTTP(w, r)
}

// openRoute opens the session of a Lazy request in the mode of its route. If the session is open already, it
// must be open in that mode.
func (rq *request) openRoute(r *http.Request, mode Mode) error {
	rq.mu.Lock()
	opened, was := rq.session != nil, rq.mode
	if was == Lazy && !opened && mode != None {
		rq.identity.mu.Lock()
		rq.mode = mode
		rq.identity.mu.Unlock()
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

// routeOf returns the mode of a request that comes in, and the pattern of its route, if it is known. If next is
// an http.ServeMux, routeOf asks it for the route.
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
