package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P11: Not every cache looks at Vary. So a response that depends on the session is also private, unless the handler,
// or one around it, says what caches may do.
func TestAnAnswerMadeOfTheSessionIsPrivate(t *testing.T) {
	t.Parallel()
	read := func(req *http.Request) { session.FromContext(req.Context()).Len() }
	mux := app()
	mux.HandleFunc("/reads", func(_ http.ResponseWriter, req *http.Request) { read(req) })
	mux.HandleFunc("/decides", func(w http.ResponseWriter, req *http.Request) {
		read(req)
		w.Header().Set("Cache-Control", "max-age=5")
	})
	mux.HandleFunc("/wants-none", func(w http.ResponseWriter, req *http.Request) {
		read(req)
		w.Header()["Cache-Control"] = nil
	})
	for name, mode := range map[string]middleware.Mode{"exclusive": middleware.Exclusive, "read-only": middleware.ReadOnly} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := around(t, r, middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }},
				func(sessions func(http.Handler) http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						if req.URL.RawQuery == "decided" {
							w.Header().Set("Cache-Control", "max-age=6")
						}
						sessions(mux).ServeHTTP(w, req)
					})
				})
			for path, want := range map[string]string{
				"/reads": "private", "/nothing": "", "/decides": "max-age=5", "/wants-none": "", "/reads?decided": "max-age=6",
			} {
				if a := newVisitor(t).get(s.URL + path); a.Header.Get("Cache-Control") != want {
					t.Errorf("%s: %v, want %q", path, a.Header, want)
				}
			}
		})
	}
}

// P11: Peek counts as use of the session. Asking for the ID, as a log does, does not.
func TestAnAnswerMadeOfAPeekIsPrivate(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := app()
		handle(mux, "/peek", func(one *session.Session, w http.ResponseWriter, req *http.Request) {
			info, err := s.sessions.Peek(req.Context(), one.ID())
			must(t, err)
			fmt.Fprint(w, info.Created)
		})
		var id string
		mux.HandleFunc("/lazy", func(_ http.ResponseWriter, req *http.Request) { // it does not start its session
			_, err := s.sessions.Peek(req.Context(), id)
			must(t, err)
		})
		mode := func(req *http.Request) middleware.Mode {
			if req.URL.Path == "/lazy" {
				return middleware.Lazy
			}
			return middleware.Exclusive
		}
		var v *visitor
		s, v = begun(t, r, middleware.Options{Mode: mode}, mux)
		id = v.get(s.URL + "/id").body
		for path, want := range map[string]string{"/id": "", "/peek": "private", "/lazy": "no-store"} {
			if h := v.get(s.URL + path).Header; h.Get("Cache-Control") != want {
				t.Errorf("%s: %v, want %q", path, h, want)
			}
		}
	})
}

// P11: Once a response has begun, its header cannot change any more. But the handler may still read the session, for
// example for the footer of a long page.
func TestAnAnswerThatBeginsEarlyIsPrivate(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 100_000)
	for name, begin := range map[string]func(w http.ResponseWriter){
		"flush":           func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"write and flush": func(w http.ResponseWriter) { fmt.Fprint(w, "x"); w.(http.Flusher).Flush() },
		"large":           func(w http.ResponseWriter) { fmt.Fprint(w, large) },
		"large copy":      func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader(large)) },
	} {
		for mode, want := range map[middleware.Mode]string{middleware.Exclusive: "private", middleware.ReadOnly: "private", middleware.Lazy: ""} {
			inFakeTime(t, fmt.Sprint(name, " ", mode), func(t *testing.T, r *redistest.Server) {
				s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }},
					http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						begin(w)
						if mode != middleware.Lazy { // a Lazy session is not open, and cannot be opened any more
							fmt.Fprint(w, session.FromContext(req.Context()).Len())
						}
					}))
				a := newVisitor(t).get(s.URL)
				vary := a.Header.Get("Vary")
				if a.StatusCode != 200 || a.Header.Get("Cache-Control") != want || (vary == "Cookie") != (want != "") {
					t.Errorf("%d %v", a.StatusCode, a.Header)
				}
			})
		}
	}
}

// P11: A handler in mode Lazy may give another response if its session cannot be opened. That response is also for
// one visitor only: a cache must not give it to visitors who are logged in.
func TestAnAnswerWithoutASessionThatWasWantedIsPrivate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(h http.Header){
		"nothing":       func(http.Header) {},
		"Cache-Control": func(h http.Header) { h.Set("Cache-Control", "max-age=5") },
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			mux := app()
			mux.HandleFunc("/feed", func(w http.ResponseWriter, req *http.Request) {
				if _, err := session.Start(req.Context()); err == nil {
					t.Error("the session was opened")
				}
				change(w.Header())
				fmt.Fprint(w, "feed for guests")
			})
			mux.HandleFunc("/static", func(http.ResponseWriter, *http.Request) {})
			modes := byPath(map[string]middleware.Mode{"/feed": middleware.Lazy, "/static": middleware.Lazy})
			s, v := begun(t, r, middleware.Options{Mode: modes}, mux)
			r.Stop(t)
			want := make(http.Header)
			want.Set("Cache-Control", "private")
			change(want)
			a := v.get(s.URL + "/feed")
			a.want(t, 200, "feed for guests")
			if got := a.Header; got.Get("Vary") != "Cookie" || got.Get("Cache-Control") != want.Get("Cache-Control") {
				t.Errorf("header %v", got)
			}
			if got := v.get(s.URL + "/static").Header; got.Get("Vary")+got.Get("Cache-Control") != "" {
				t.Errorf("the session was not wanted, and the header is %v", got)
			}
		})
	}
}

// P11: Some caches look only at the last Vary line, so there is only one.
func TestVaryIsOneLine(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Len()
			w.Header()["Vary"] = req.URL.Query()["vary"]
			w.WriteHeader(200)
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1") // a trailer: other code completes the header then
		}))
		for set, want := range map[string][]string{
			"":                            {"Cookie"},
			"vary=":                       {"Cookie"},
			"vary=Cookie":                 {"Cookie"},
			"vary=cookie&vary=Cookie":     {"Cookie"},
			"vary=Accept-Encoding":        {"Accept-Encoding, Cookie"},
			"vary=Accept,Cookie&vary=Age": {"Accept, Age, Cookie"},
			"vary=*":                      {"*"},
			"vary=Origin&vary=*":          {"Origin", "*"},
		} {
			if a := newVisitor(t).get(s.URL + "?" + set); !slices.Equal(a.Header["Vary"], want) {
				t.Errorf("%q became %q, want %q", set, a.Header["Vary"], want)
			}
		}
	})
}

// P11: a cache would hand a response that sets the cookie to the next visitor, and so
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
		for _, path := range []string{"/add", "/login", "/logout"} { // a new cookie, a changed cookie, a deleted cookie
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
				t.Errorf("%s: the response has lost its ETag: %v", path, a.Header)
			}
		}
		// The handler decides whether a response without a cookie is cached.
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

// P11: A response varies by cookie if its handler has asked the session for anything but the ID, which is for logs. A
// cache must not give one visitor's page to another.
func TestAnAnswerMadeOfTheSessionVariesByCookie(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		uses := map[string]func(s *session.Session) any{
			"/Get":     func(s *session.Session) any { n, _ := session.Get[int](s, "n"); return n },
			"/Decode":  func(s *session.Session) any { var n int; return s.Decode("n", &n) },
			"/IsNew":   func(s *session.Session) any { return s.IsNew() },
			"/Len":     func(s *session.Session) any { return s.Len() },
			"/Keys":    func(s *session.Session) any { return s.Keys() != nil },
			"/Expires": func(s *session.Session) any { return s.Expires().IsZero() },
			"/Delete":  func(s *session.Session) any { s.Delete("absent"); return "" },
			"/Commit":  func(s *session.Session) any { _ = s.Commit(t.Context()); return s.Len() },
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
			t.Errorf("a response that does not use the session: %v", a.Header)
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
