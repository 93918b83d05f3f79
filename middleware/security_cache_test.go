package middleware_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P11: a cache would hand an answer that sets the cookie to the next visitor, and so
// the session. That holds whatever the handler, or one around it, asks of caches.
func TestAnAnswerWithTheCookieIsNeverCached(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		public := func(h http.Header) {
			h.Set("Cache-Control", "public, max-age=600")
			h.Set("CDN-Cache-Control", "max-age=600")
			h.Set("X-Accel-Expires", "600")
			h["Example-CDN-Cache-Control"] = []string{"max-age=600"}
			h.Set("Surrogate-Control", "max-age=600")
			h.Set("ETag", `"1"`)
		}
		mux := app()
		inner := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			public(w.Header())
			mux.ServeHTTP(w, req)
		})
		s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				public(w.Header())
				sessions(inner).ServeHTTP(w, req)
			})
		})
		v := newVisitor(t)
		for _, path := range []string{"/add", "/login", "/logout"} { // a new cookie, another, none
			a := v.get(s.URL + path)
			if !a.sets() || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", path, a.Header)
			}
			for _, name := range []string{"CDN-Cache-Control", "Example-CDN-Cache-Control", "Surrogate-Control", "X-Accel-Expires"} {
				if a.Header.Get(name) != "" {
					t.Errorf("%s: a content delivery network reads: %s", path, a.Header.Get(name))
				}
			}
			if a.Header.Get("ETag") == "" {
				t.Errorf("%s: too much is taken out: %v", path, a.Header)
			}
		}
		// Whether an answer without a cookie is cached is up to the handler.
		if a := v.get(s.URL + "/nothing"); a.Header.Get("CDN-Cache-Control") == "" || a.Header.Get("Cache-Control") == "no-store" {
			t.Errorf("%v", a.Header)
		}
		// No cache keeps an error.
		v.get(s.URL+"/add").want(t, 200, "1")
		r.Stop(t)
		if a := v.get(s.URL + "/add"); a.StatusCode != 503 || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("CDN-Cache-Control") != "" {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
	})
}

// P11: an answer for which the session was asked anything but its id, which is for
// logs, varies by cookie: a cache must not hand one visitor's page to another.
func TestAnAnswerMadeOfTheSessionVariesByCookie(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		uses := map[string]func(s *session.Session) any{
			"/Get":    func(s *session.Session) any { n, _ := session.Get[int](s, "n"); return n },
			"/Decode": func(s *session.Session) any { var n int; return s.Decode("n", &n) },
			"/IsNew":  func(s *session.Session) any { return s.IsNew() },
			"/Len":    func(s *session.Session) any { return s.Len() },
			"/Keys":   func(s *session.Session) any { return s.Keys() != nil },
			"/Delete": func(s *session.Session) any { s.Delete("absent"); return "" },
			"/Commit": func(s *session.Session) any { _ = s.Commit(t.Context()); return s.Len() },
		}
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			if use, ok := uses[req.URL.Path]; ok {
				fmt.Fprint(w, use(s))
			}
		}))
		for path := range uses {
			if a := newVisitor(t).get(s.URL + path); a.Header.Get("Vary") != "Cookie" {
				t.Errorf("%s: %v", path, a.Header)
			}
		}
		if a := newVisitor(t).get(s.URL + "/"); a.Header.Get("Vary") != "" {
			t.Errorf("an answer that has nothing to do with the session: %v", a.Header)
		}
	})
}

// ASVS 14.3.2: a handler's own no-store stays on a page that is made of the session.
func TestAHandlersNoStoreStays(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/account", func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			mux.ServeHTTP(w, as(req, "/get"))
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		if got := v.get(s.URL + "/account").Header.Values("Cache-Control"); len(got) != 1 || got[0] != "no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
	})
}
