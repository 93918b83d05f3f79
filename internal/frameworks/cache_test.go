package frameworks

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
)

// P11 behind a real cache: a response made for one visitor is never shown to another.

// compressed are the ways in which programs compress their pages. Compressors change Vary, too.
var compressed = map[string]func(*middleware.Sessions, http.Handler) http.Handler{
	"no compressor": func(s *middleware.Sessions, pages http.Handler) http.Handler { return s.Handler(pages) },
	"chi's outside": func(s *middleware.Sessions, pages http.Handler) http.Handler {
		return chimiddleware.Compress(5)(s.Handler(pages))
	},
	"chi's inside": func(s *middleware.Sessions, pages http.Handler) http.Handler {
		return s.Handler(chimiddleware.Compress(5)(pages))
	},
	"gzhttp's outside": func(s *middleware.Sessions, pages http.Handler) http.Handler { return gzip(s.Handler(pages)) },
	"gzhttp's inside":  func(s *middleware.Sessions, pages http.Handler) http.Handler { return s.Handler(gzip(pages)) },
}

func who(r *http.Request) string {
	user, _ := session.Get[string](session.FromContext(r.Context()), "user")
	return "user=" + user + ";"
}

// personal are pages that greet the visitor, each in a different way.
var personal = map[string]http.HandlerFunc{
	"/at-once": func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, who(r)) },
	"/after-flush": func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "a header")
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, who(r))
	},
	"/lazy": func(w http.ResponseWriter, r *http.Request) {
		_, _ = session.Start(r.Context())
		w.WriteHeader(http.StatusOK) // without this, a Flush confuses chi's Compress
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, who(r))
	},
	"/readonly": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, who(r))
	},
	"/expires": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Expires", "Thu, 01 Jan 2099 00:00:00 GMT")
		fmt.Fprint(w, who(r))
	},
}

func modesOfPages(r *http.Request) middleware.Mode {
	switch r.URL.Path {
	case "/lazy":
		return middleware.Lazy
	case "/readonly":
		return middleware.ReadOnly
	default:
		return middleware.Exclusive
	}
}

// pages serves the personal pages and others, as text/html, which compressors compress.
func pages() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(path string, h http.HandlerFunc) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			h(w, r)
		})
	}
	for path, h := range personal {
		handle(path, h)
	}
	handle("POST /login", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Renew()
		s.Set("user", r.FormValue("user"))
	})
	handle("/visit", func(w http.ResponseWriter, r *http.Request) { // a GET that sets the cookie
		w.Header().Set("X-Accel-Expires", "600")
		w.Header().Set("Cache-Control", "public, max-age=600")
		add(session.FromContext(r.Context()), 1)
		fmt.Fprint(w, who(r))
	})
	handle("/public", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=600")
		fmt.Fprint(w, who(r))
	})
	handle("/accel", func(w http.ResponseWriter, r *http.Request) { // for nginx this comes first
		w.Header().Set("X-Accel-Expires", "600")
		fmt.Fprint(w, who(r))
	})
	handle("/nobodys", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "the same for all") })
	return mux
}

// A cached is a site behind nginx, with three visitors.
type cached struct {
	*site
	ann, bob, nobody *visitor // nobody is a visitor who is not logged in
}

// eachCached runs a test with each way to compress.
func eachCached(t *testing.T, f func(t *testing.T, c cached)) {
	t.Parallel()
	for name, compress := range compressed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, middleware.Options{Mode: modesOfPages}, func(sessions *middleware.Sessions) http.Handler {
				return compress(sessions, pages())
			})
			visitor := behindNginx(t, s)
			c := cached{s, visitor(), visitor(), visitor()}
			c.ann.post("/login", "user=ann").want(t, 200, "")
			c.bob.post("/login", "user=bob").want(t, 200, "")
			f(t, c)
		})
	}
}

// shows checks that each visitor sees only their own name at path, in any order.
func (c cached) shows(t *testing.T, path string) {
	t.Helper()
	visits := []struct {
		name, sees string
		*visitor
	}{{"ann", "ann", c.ann}, {"bob", "bob", c.bob}, {"nobody", "", c.nobody}, {"ann again", "ann", c.ann}, {"bob again", "bob", c.bob}}
	for _, visit := range visits {
		a := visit.get(path)
		if !strings.HasSuffix(a.body, "user="+visit.sees+";") {
			t.Errorf("%s: %s gets …%q (X-Cache %s, Vary %q, Cache-Control %q): %v", path, visit.name,
				a.body[max(0, len(a.body)-20):], a.Header.Get("X-Cache"), a.Header["Vary"], a.Header.Get("Cache-Control"), a.err)
		}
	}
}

// A response made for one visitor is not shown to another. If a handler says that its page is public, the
// cache keeps a separate copy for each visitor's cookie. A page that uses no session is kept for all.
func TestACacheShowsNobodyAnothersPage(t *testing.T) {
	eachCached(t, func(t *testing.T, c cached) {
		for path := range personal {
			c.shows(t, path)
		}
		if !strings.HasSuffix(t.Name(), "chi's_outside") { // that compressor adds a second line to Vary: the guide says so
			c.shows(t, "/accel") // whether nginx keeps the page or not
			c.shows(t, "/public")
			if a := c.ann.get("/public"); a.Header.Get("X-Cache") != "HIT" {
				t.Errorf("%v", a.Header)
			}
		}
		c.ann.get("/nobodys").want(t, 200, "the same for all")
		for _, v := range []*visitor{c.ann, c.bob, c.nobody} {
			if a := v.get("/nobodys"); a.body != "the same for all" || a.Header.Get("X-Cache") != "HIT" {
				t.Errorf("%q %v", a.body, a.Header)
			}
		}
	})
}

// A response that sets the cookie is never kept, even if nginx is told to ignore Set-Cookie, or how long to keep
// the page. An error is not kept either: the next request gets a fresh response.
func TestACacheKeepsNoCookieAndNoError(t *testing.T) {
	eachCached(t, func(t *testing.T, c cached) {
		first := c.nobody.get("/visit")
		c.nobody.Jar, _ = cookiejar.New(nil) // another visitor
		second := c.nobody.get("/visit")
		if !first.sets() || !second.sets() || first.Header.Get("Set-Cookie") == second.Header.Get("Set-Cookie") {
			t.Errorf("two visitors get %q and %q", first.Header["Set-Cookie"], second.Header["Set-Cookie"])
		}
		c.redis.Stop(t)
		c.ann.get("/at-once").want(t, 503, "*")
		c.redis.Restart(t)
		c.ann.get("/at-once").want(t, 200, "user=;") // the session has no user any more
		c.bob.get("/at-once").want(t, 200, "user=;")
	})
}
