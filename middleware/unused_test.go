package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P9: a request without a session that writes nothing costs no Redis command and gets
// no cookie, in any mode.
func TestNoCookieAndNothingWrittenIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		mux := app()
		mux.HandleFunc("/pop", func(_ http.ResponseWriter, req *http.Request) { // written and taken back
			s := session.FromContext(req.Context())
			s.Set("flash", "hello")
			_, _ = session.Pop[string](s, "flash")
		})
		handle(mux, "/reopen", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			for range 3 {
				must(t, s.Commit(req.Context()))
				must(t, s.Reopen(req.Context()))
			}
		})
		for name, mode := range map[string]middleware.Mode{"exclusive": middleware.Exclusive, "read-only": middleware.ReadOnly, "optimistic": middleware.Optimistic, "lazy": middleware.Lazy, "none": middleware.None} {
			s := newSite(t, proxy.Pool(t, 4), middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }}, mux)
			paths := []string{"/nothing"}
			if name == "exclusive" {
				paths = append(paths, "/get", "/pop", "/logout", "/id", "/reopen")
			}
			for _, path := range paths {
				a := newVisitor(t).get(s.URL + path)
				a.want(t, 200, "*")
				if a.sets() || proxy.Requests() > 0 {
					t.Errorf("%s %s: %d requests to Redis, header %v", name, path, proxy.Requests(), a.Header)
				}
			}
		}
	})
}

// P9: an ID that Redis does not know is never adopted, and leaves no lock.
func TestAnUnknownIDIsNotAdopted(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, app())
		v := s.visitor(t)
		planted := v.cookies(s)
		id := v.get(s.URL + "/id").body
		r.Do(t, "FLUSHALL")
		proxy.Forget()

		victim := with(t, planted...)
		a := victim.get(s.URL + "/get")
		a.want(t, 200, "0")
		if a.sets() || len(r.Keys(t)) != 0 {
			t.Errorf("reading: %v, keys %v", a.Header, r.Keys(t))
		}
		a = victim.get(s.URL + "/add")
		a.want(t, 200, "1")
		if record, _ := keysOf(id); !a.sets() || r.Exists(t, record) {
			t.Errorf("the planted ID was adopted")
		}
		a = victim.get(s.URL + "/logout")
		if a.Header.Get("Set-Cookie") == "" || !strings.Contains(a.Header.Get("Set-Cookie"), "Max-Age=0") {
			t.Errorf("a logout leaves the useless cookie: %v", a.Header)
		}
	})
}

// P10: the round trips of requests, counted on the wire once Redis knows the scripts.
func TestRequestsToRedisAreCounted(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		mux := app()
		handle(mux, "/same", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			n, _ := session.Get[int](s, "n")
			s.Set("n", n)
		})
		mux.HandleFunc("/lazy", func(http.ResponseWriter, *http.Request) {})
		mux.HandleFunc("/lazy-add", func(w http.ResponseWriter, req *http.Request) {
			if _, err := session.Start(req.Context()); err != nil {
				t.Error(err)
			}
			mux.ServeHTTP(w, as(req, "/add"))
		})
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{Mode: byPath(map[string]middleware.Mode{
			"/get": middleware.ReadOnly, "/lazy": middleware.Lazy, "/lazy-add": middleware.Lazy, "/len": middleware.None,
			"/id": middleware.Optimistic, "/set/k": middleware.Optimistic, "/set/n": middleware.Optimistic,
		})}, mux)
		visit := func(path string) func(v *visitor) {
			return func(v *visitor) { v.get(s.URL+path).want(t, 200, "*") }
		}
		warm := newVisitor(t)
		for _, path := range []string{"/add", "/add", "/get", "/set/k", "/nothing", "/login", "/logout"} {
			visit(path)(warm)
		}
		for _, c := range []struct {
			path string
			want int
			why  string
		}{
			{"/add", 2, "take and read; write and release"},
			{"/same", 2, "take and read; touch and release"},
			{"/nothing", 2, "take and read; touch and release"},
			{"/get", 1, "read and touch"},
			{"/id", 1, "optimistic, without a write: read and touch"},
			{"/set/n", 1, "the same: it is stored already"},
			{"/set/k", 2, "optimistic, with a write: read and touch; write"},
			{"/lazy", 0, "never started"},
			{"/lazy-add", 2, "as exclusive, once started"},
			{"/login", 3, "take and read; write the new ID; bury the old one and release"},
			{"/logout", 2, "take and read; bury and release"},
		} {
			v := s.visitor(t)
			proxy.Forget()
			visit(c.path)(v)
			if n := proxy.RoundTrips(); n != c.want {
				t.Errorf("%s: %d round trips, want %d (%s): %v", c.path, n, c.want, c.why, proxy.Commands())
			}
		}
		proxy.Forget()
		visit("/add")(newVisitor(t))
		if n := proxy.Requests(); n != 1 {
			t.Errorf("a new session: %d requests, want 1", n)
		}
	})
}

// In mode Lazy the handler decides what to do if the session cannot be opened. A Start
// after the response has begun is an error, too.
func TestLazyStart(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.Lazy }},
			http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path == "/late" {
					w.(http.Flusher).Flush()
				}
				s, err := session.Start(req.Context())
				if err != nil {
					fmt.Fprint(w, "no session: ", strings.Contains(err.Error(), "after the response has begun"))
					return
				}
				if req.URL.Path == "/set" {
					s.Set("a", 1)
				}
				again, err := session.Start(req.Context())
				fmt.Fprint(w, s == again, s == session.FromContext(req.Context()), err)
			}))
		newVisitor(t).get(s.URL).want(t, 200, "true true <nil>")
		newVisitor(t).get(s.URL+"/late").want(t, 200, "no session: true")
		if len(s.log.Lines("session failed")) != 1 {
			t.Errorf("log:\n%s", s.log)
		}
		v := newVisitor(t)
		v.get(s.URL+"/set").want(t, 200, "true true <nil>")
		r.Stop(t)
		v.get(s.URL).want(t, 200, "no session: false")
		if len(s.log.Lines("redis is unavailable")) != 1 {
			t.Errorf("log:\n%s", s.log)
		}
	})
}
