package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// serveOnce returns a handler's answer to a request without a cookie.
func serveOnce(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	return w
}

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

// A handler finds the inner session, or that of the Sessions that it asks, also behind a route of
// the outer ones.
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
				t.Errorf("two Sessions with two cookies are nothing to log:\n%s", log)
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

// The inner of two sessions is saved first. If the outer one fails then, or the handler around
// the inner one panics, the client gets the inner one's cookie all the same.
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
