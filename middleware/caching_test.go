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

// P11: not every cache looks at Vary, so an answer that was made of the session is also private,
// unless the handler, or one around it, says what caches may do.
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

// P11: once an answer has begun, its header cannot change any more, and the handler may read the
// session all the same: for the footer of a long page, say.
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
						if mode != middleware.Lazy { // there it is not open, and cannot be opened any more
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

// P11: some caches look at the last Vary line only, so there is one.
func TestVaryIsOneLine(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Len()
			w.Header()["Vary"] = req.URL.Query()["vary"]
			w.WriteHeader(200)
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1") // the header is completed in another way then
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
