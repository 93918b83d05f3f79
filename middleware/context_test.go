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

// A shop may keep its visitors' carts in one session and its staff's work in another.
func TestTwoSessionsOnOneRequest(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	st := store.New(r.Pool(t, 4), store.Options{})
	log := &logtest.Buffer{}
	named := func(cookie string) *middleware.Sessions {
		s, err := middleware.New(st, middleware.Options{Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: cookie}, Logger: log.Logger()})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	carts, staff, again := named("cart"), named("staff"), named("cart")
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := session.FromContext(r.Context())
		fmt.Fprint(w, inner == staff.FromContext(r.Context()), inner == carts.FromContext(r.Context()))
	})
	if got := serveOnce(t, carts.Handler(staff.Handler(both))).Body.String(); got != "true false" {
		t.Errorf("the inner session is the staff's, the carts': %s", got)
	}
	if got := serveOnce(t, carts.Handler(staff.Handler(carts.Handler(both)))).Body.String(); got != "true false" {
		t.Errorf("wrapped by the carts once more: the inner session is the staff's, the carts': %s", got)
	}
	if log.String() != "" {
		t.Errorf("two Sessions with two cookies are nothing to log:\n%s", log)
	}
	serveOnce(t, carts.Handler(again.Handler(http.NotFoundHandler())))
	if len(log.Lines("cookie=cart")) != 1 {
		t.Errorf("two Sessions with one cookie are not reported:\n%s", log)
	}
	defer func() {
		if recover() == nil {
			t.Error("FromContext found a session of Sessions that are not around the handler")
		}
	}()
	serveOnce(t, staff.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { carts.FromContext(r.Context()) })))
}

// The route of outer Sessions in mode Lazy opens their session, not that of the inner ones.
func TestARouteOfTheOuterOfTwoSessions(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	carts := newSessions(t, r, middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.Lazy }})
	staff, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}),
		middleware.Options{Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: "staff"}})
	if err != nil {
		t.Fatal(err)
	}
	both := carts.Exclusive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner := session.FromContext(r.Context())
		fmt.Fprint(w, inner == staff.FromContext(r.Context()), inner == carts.FromContext(r.Context()))
	}))
	if got := serveOnce(t, carts.Handler(staff.Handler(both))).Body.String(); got != "true false" {
		t.Errorf("the inner session is the staff's, the carts': %s", got)
	}
}

// The inner of two sessions is saved first. Where the outer one fails then, or the handler around
// the inner one panics, the client gets the inner one's cookie all the same.
func TestTheInnerCookieOutlivesTheOuterFailure(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	carts := newSessions(t, r, middleware.Options{})
	staff, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}),
		middleware.Options{Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: "staff"}})
	if err != nil {
		t.Fatal(err)
	}
	login := staff.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("user", "ann")
		w.Header().Set("X-Handler", "yes")
		fmt.Fprint(w, "welcome")
	}))
	for name, outer := range map[string]func(own *session.Session){
		"cannot be saved": func(own *session.Session) { own.Set("f", func() {}) },
		"panics":          func(*session.Session) { panic("after the login") },
	} {
		h := carts.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("n", 1)
			login.ServeHTTP(w, r)
			outer(session.FromContext(r.Context()))
		}))
		a := serveOnce(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}()
			h.ServeHTTP(w, r)
		})).Result()
		if cookies := a.Cookies(); a.StatusCode != 500 || len(cookies) != 1 || cookies[0].Name != "staff" ||
			a.Header.Get("X-Handler") != "" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, header %v", name, a.StatusCode, a.Header)
		}
	}
}
