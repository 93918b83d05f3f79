package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// routes are an application each of whose routes has a mode of its own.
func routes(s *middleware.Sessions) *http.ServeMux {
	plain := app()
	mux := http.NewServeMux()
	mux.Handle("/add", plain) // as Options.Mode says
	mux.Handle("/exclusive/add", s.Exclusive(http.StripPrefix("/exclusive", plain)))
	mux.Handle("/readonly/{what}", s.ReadOnly(http.StripPrefix("/readonly", plain)))
	mux.Handle("/optimistic/{what}", s.Optimistic(http.StripPrefix("/optimistic", plain)))
	mux.Handle("/lazy", s.Lazy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own, err := session.Start(r.Context())
		if err != nil {
			http.Error(w, err.Error(), middleware.Status(err))
			return
		}
		fmt.Fprint(w, own.Len())
	})))
	mux.Handle("/none", s.None(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })))
	return mux
}

// A route's mode counts before its session is opened: a route that only reads never waits.
func TestARouteHasAModeOfItsOwn(t *testing.T) {
	t.Parallel()
	lazy := func(*http.Request) middleware.Mode { return middleware.Lazy }
	for name, test := range map[string]struct {
		mode func(*http.Request) middleware.Mode
		wrap func(*middleware.Sessions, http.Handler) http.Handler
	}{
		"around a ServeMux": {nil, (*middleware.Sessions).Handler},
		"Lazy around another router": {lazy, func(s *middleware.Sessions, mux http.Handler) http.Handler {
			return s.Handler(http.HandlerFunc(mux.ServeHTTP))
		}},
		"the routes alone": {nil, func(_ *middleware.Sessions, mux http.Handler) http.Handler { return mux }},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := newSessions(t, r, middleware.Options{Mode: test.mode, LockWait: 50 * time.Millisecond})
			none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
			site := newSite(t, r.Pool(t, 1), none, test.wrap(s, routes(s)))

			v := newVisitor(t)
			v.get(site.URL+"/exclusive/add").want(t, 200, "1")
			v.get(site.URL+"/lazy").want(t, 200, "1")
			v.get(site.URL+"/none").want(t, 200, "ok")
			v.get(site.URL+"/readonly/add").want(t, 500, "*")
			v.get(site.URL+"/optimistic/get").want(t, 200, "1")
			v.get(site.URL+"/optimistic/add").want(t, 200, "2")
			v.post(site.URL+"/optimistic/add").want(t, 500, "*")
			holdElsewhere(t, r)
			v.get(site.URL+"/readonly/get").want(t, 200, "2")
			v.get(site.URL+"/optimistic/get").want(t, 200, "2")
			v.get(site.URL+"/optimistic/add").want(t, 503, "*")
			v.get(site.URL+"/none").want(t, 200, "ok")
			v.get(site.URL+"/exclusive/add").want(t, 503, "*")
			v.get(site.URL+"/lazy").want(t, 503, "*")
		})
	}
}

// holdElsewhere locks the only session, as another process would.
func holdElsewhere(t *testing.T, r *redistest.Server) {
	t.Helper()
	keys := r.Keys(t)
	if len(keys) != 1 {
		t.Fatalf("there are the keys %q, want one session", keys)
	}
	id := strings.TrimSuffix(strings.TrimPrefix(keys[0], "latchkey:{"), "}")
	hold, _, err := records.Of(store.New(r.Pool(t, 1), store.Options{})).Take(t.Context(), id, records.Terms{})
	must(t, err)
	t.Cleanup(func() { hold.Release(t.Context()) })
}

// If a session was opened before its route was known, in another mode than the route's, the route
// cannot keep the promise of its mode, and fails with an error. A mode that does not exist is an
// error, too.
func TestAModeThatComesTooLateIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		for m := middleware.Mode(-1); m <= middleware.None+1; m++ {
			log := &logtest.Buffer{}
			s := newSessions(t, r, middleware.Options{Logger: log.Logger(), Mode: func(*http.Request) middleware.Mode { return m }})
			wrap := []func(http.Handler) http.Handler{s.Exclusive, s.ReadOnly, s.Optimistic, s.Lazy, s.None}
			for route := middleware.Exclusive; route <= middleware.None; route++ {
				want, says := 500, fmt.Sprintf("the route is %v, its session was opened as %v", route, m)
				switch {
				case m == middleware.Lazy, m == middleware.None, m == route, m == middleware.Exclusive && route == middleware.Lazy:
					want, says = 200, ""
				case m < middleware.Exclusive, m > middleware.None:
					says = fmt.Sprintf("Mode(%d)", m)
				}
				got := serveOnce(t, s.Handler(wrapped{wrap[route](nothing)})).Code
				if got != want || says != "" && len(log.Lines(says)) == 0 {
					t.Errorf("opened as %v, the route is %v: %d, want %d; log:\n%s", m, route, got, want, log)
				}
			}
		}
	})
}

// wrapped is a router that cannot be asked which route it will take.
type wrapped struct{ http.Handler }

// cartsAndStaff returns two sessions for one request: a shop may keep its visitors' carts in one,
// and its staff's work in another.
func cartsAndStaff(t *testing.T, r *redistest.Server, modes ...middleware.Mode) (carts, staff *middleware.Sessions, log *logtest.Buffer) {
	t.Helper()
	log = &logtest.Buffer{}
	var both [2]*middleware.Sessions
	for i, name := range []string{"cart", "staff"} {
		var err error
		both[i], err = middleware.New(store.New(r.Pool(t, 4), steady), middleware.Options{
			Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: name}, Logger: log.Logger(),
			Mode: func(*http.Request) middleware.Mode { return modes[i] },
		})
		must(t, err)
	}
	return both[0], both[1], log
}

// A handler finds the inner session, or by Sessions.FromContext the session of either Sessions. That holds even
// behind a route of the outer ones.
func TestTwoSessionsOnOneRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Lazy} {
			carts, staff, log := cartsAndStaff(t, r, mode, middleware.Exclusive)
			both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner := session.FromContext(r.Context())
				fmt.Fprint(w, inner == staff.FromContext(r.Context()), inner == carts.FromContext(r.Context()))
			})
			for name, inside := range map[string]http.Handler{
				"wrapped once more":    carts.Handler(carts.Exclusive(both)),
				"a route of the carts": carts.Exclusive(both),
			} {
				if got := serveOnce(t, carts.Handler(staff.Handler(inside))).Body.String(); got != "true false" {
					t.Errorf("%v, %s: the inner session is the staff's, the carts': %s", mode, name, got)
				}
			}
			if log.String() != "" {
				t.Errorf("two Sessions with different cookies are logged:\n%s", log)
			}
			again, _, log := cartsAndStaff(t, r, mode, middleware.Exclusive)
			serveOnce(t, carts.Handler(again.Handler(http.NotFoundHandler())))
			if len(log.Lines("cookie=cart")) != 1 {
				t.Errorf("two Sessions with one cookie are not reported:\n%s", log)
			}
		}
		carts, staff, _ := cartsAndStaff(t, r, middleware.Exclusive, middleware.Exclusive)
		defer func() {
			if recover() == nil {
				t.Error("FromContext found a session of Sessions that are not around the handler")
			}
		}()
		serveOnce(t, staff.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { carts.FromContext(r.Context()) })))
	})
}

// The inner of two sessions is saved first. If the outer one then fails, or the handler around the inner one panics,
// the client still gets the inner one's cookie.
func TestTheInnerCookieOutlivesTheOuterFailure(t *testing.T) {
	t.Parallel()
	for name, outer := range map[string]func(own *session.Session){
		"cannot be saved": func(own *session.Session) { own.Set("f", func() {}) },
		"panics":          func(*session.Session) { panic("after the login") },
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			carts, staff, _ := cartsAndStaff(t, r, middleware.Exclusive, middleware.Exclusive)
			login := staff.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				session.FromContext(r.Context()).Set("user", "ann")
				w.Header().Set("X-Handler", "yes")
				fmt.Fprint(w, "welcome")
			}))
			a := serveOnce(t, recoverer(carts.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				session.FromContext(r.Context()).Set("n", 1)
				login.ServeHTTP(w, r)
				outer(session.FromContext(r.Context()))
			})))).Result()
			if cookies := a.Cookies(); a.StatusCode != 500 || len(cookies) != 1 || cookies[0].Name != "staff" ||
				a.Header.Get("X-Handler") != "" || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%d, header %v", a.StatusCode, a.Header)
			}
		})
	}
}

// A handler that is wrapped twice has one session, and does not wait for itself,
// whatever is between the two.
func TestWrappedTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := around(t, r, middleware.Options{LockWait: 100 * time.Millisecond}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return sessions(http.TimeoutHandler(sessions(app()), time.Minute, "too slow"))
		})
		v := s.visitor(t)
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// If an outer handler ends a wait with a cause of its own, the request still fails as one whose wait has ended.
func TestAContextThatEndsWithACauseOfItsOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			inner := sessions(app())
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/add" && req.URL.RawQuery != "" {
					ctx, cancel := context.WithTimeoutCause(req.Context(), 20*time.Millisecond, errors.New("our own cause"))
					defer cancel()
					req = req.WithContext(ctx)
				}
				inner.ServeHTTP(w, req)
			})
		})
		v := s.visitor(t)
		free := v.hold(s.URL + "/hold")
		v.get(s.URL+"/add?impatient").want(t, 503, "*")
		free().want(t, 200, "")
	})
}
