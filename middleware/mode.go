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

// A Mode is how a request uses its session. [ByMethod] chooses the usual one: Optimistic for a GET, Exclusive for a
// POST. Options.Mode chooses for each request, and a route may have a mode of its own: see [Sessions.Exclusive].
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
	// informational responses, and its changes to the values of the request's context, except those that a chi
	// router around the sessions makes. Side effects that must not happen twice, such as mail, belong after a
	// successful Session.Commit, which may fail with store.ErrConflict, or in a route with another mode.
	// Optimistic is for GET, HEAD, OPTIONS and TRACE; another method is an error. A GET with a body runs as
	// Exclusive, and so does a GET inside other Sessions.
	Optimistic
	// Lazy does nothing until the handler calls session.Start, and then acts like Exclusive. A Start that
	// fails may be repeated. All calls of a request together wait for LockWait at most; once that is used up, a call
	// tries once, without waiting.
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
// session.Start. Or leave Handler out, and wrap single routes, each in its mode. If the session is
// already open in another mode, the response is an error.
func (s *Sessions) Exclusive(h http.Handler) http.Handler { return s.inMode(Exclusive, h) }

// ReadOnly returns h with its session in mode ReadOnly, see [Sessions.Exclusive].
func (s *Sessions) ReadOnly(h http.Handler) http.Handler { return s.inMode(ReadOnly, h) }

// Optimistic returns h with its session in mode Optimistic, which is what a GET should be: it waits
// for other requests only if it writes.
//
//	mux.Handle("GET /cart", sessions.Optimistic(showCart))
//
// Another method than GET, HEAD, OPTIONS and TRACE is an error. See [Sessions.Exclusive].
func (s *Sessions) Optimistic(h http.Handler) http.Handler { return s.inMode(Optimistic, h) }

// Lazy returns h with its session in mode Lazy, see [Sessions.Exclusive].
func (s *Sessions) Lazy(h http.Handler) http.Handler { return s.inMode(Lazy, h) }

// None returns h without a session, see [Sessions.Exclusive].
func (s *Sessions) None(h http.Handler) http.Handler { return s.inMode(None, h) }

// A route is a handler with its own mode, or whose requests are passive, or both.
type route struct {
	sessions *Sessions
	mode     Mode // may be asOptions
	passive  bool
	next     http.Handler
}

// asOptions is the mode of a route without a mode of its own: Options.Mode counts.
const asOptions Mode = -1

// inMode returns h as a route with a mode. A passive route stays passive.
func (s *Sessions) inMode(mode Mode, h http.Handler) http.Handler {
	if rt, ok := h.(*route); ok && rt.sessions == s && rt.mode == asOptions {
		return &route{sessions: s, mode: mode, passive: rt.passive, next: rt.next}
	}
	return &route{sessions: s, mode: mode, next: h}
}

func (rt *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := rt.sessions
	rq := s.requestOf(r.Context())
	if rq == nil { // the route stands alone
		alone, pattern := s.routeOf(rt, r)
		alone.next = rt.next
		s.serve(w, r, alone, pattern)
		return
	}
	if err := rq.openRoute(r, rt); err != nil {
		s.respondError(w, rq, err)
		return
	}
	rt.next.ServeHTTP(w, r)
}

// openRoute opens the session of a Lazy request in the mode of its route. If the session is open already, it
// must be open in that mode, and passive if the route is.
func (rq *request) openRoute(r *http.Request, rt *route) error {
	rq.mu.Lock()
	opened, was, mode := rq.session != nil, rq.mode, rt.mode
	if mode == asOptions {
		mode = was
	}
	if was == Lazy && !opened {
		rq.passive = rq.passive || rt.passive
		if mode != None {
			rq.identity.mu.Lock()
			rq.mode = mode
			rq.identity.mu.Unlock()
		}
	}
	late := rt.passive && !rq.passive
	rq.mu.Unlock()
	name := strings.TrimSpace("the route " + patternOf(r)) // not every router sets it
	switch {
	case late:
		return fmt.Errorf("%w: %s is passive, its session was opened by a request that is not", errLateMode, name)
	case was == Lazy && !opened && (mode == Exclusive || mode == ReadOnly || mode == Optimistic):
		_, err := session.Start(ownSession{r.Context(), rq.lazy})
		return err
	case was == mode:
		return nil
	case was == Lazy && (!opened || mode == Exclusive), mode == Lazy && was == Exclusive:
		return nil // Lazy opens a session as Exclusive does, when it is needed
	}
	return fmt.Errorf("%w: %s is %v, its session was opened as %v", errLateMode, name, mode, was)
}

// routeOf returns the route of a request that comes in to next, and its pattern if that is known. If next is an
// http.ServeMux, routeOf asks it for the route.
func (s *Sessions) routeOf(next http.Handler, r *http.Request) (rt route, pattern string) {
	pattern = patternOf(r)
	h := next
	// For a CONNECT the mux, too, may return a path instead of a pattern.
	if mux, ok := next.(*http.ServeMux); ok && r.Method != http.MethodConnect {
		h, pattern = mux.Handler(r)
	}
	rt = route{sessions: s, mode: asOptions, next: next}
	switch its := h.(type) {
	case *route:
		if its.sessions == s {
			rt.mode, rt.passive = its.mode, its.passive
		}
	case *debugHandler:
		rt.mode = None // of any Sessions
	}
	if rt.mode == asOptions {
		rt.mode = Exclusive
		if s.options.Mode != nil {
			rt.mode = s.options.Mode(r)
		}
	}
	return rt, pattern
}
