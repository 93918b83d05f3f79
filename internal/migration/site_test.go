package migration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A site is a program that has moved to Latchkey. /old/login is the program as it was before.
type site struct {
	*testing.T
	library
	*httptest.Server
	address  *url.URL
	redis    *redistest.Server // Latchkey's
	sessions *middleware.Sessions
	adopt    Adopt
	held     chan struct{} // /hold sends to it, then waits for another message
}

// each runs a test with all libraries, in fake time. Their sessions are in one Redis and Latchkey's in another,
// so that a test may change only the old ones.
func each(t *testing.T, f func(s *site, old *redistest.Server)) {
	t.Parallel()
	for name, open := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.InFakeTime(t, func(t *testing.T, old *redistest.Server) {
				f(newSite(t, open(t, old), old.Another(t)), old)
			})
		})
	}
}

func newSite(t *testing.T, l library, redis *redistest.Server) *site {
	t.Helper()
	st := store.New(redis.Pool(t, 100), store.Options{Timeout: patience})
	t.Cleanup(func() { st.Close() })
	o := l.options
	o.Keys = [][]byte{bytes.Repeat([]byte("key"), 11)}
	o.Cookie.Name, o.Cookie.Secure = "sid", false // over plain HTTP it would not come back
	o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	sessions, err := middleware.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	site := &site{T: t, library: l, redis: redis, sessions: sessions, held: make(chan struct{})}
	mux := http.NewServeMux()
	me := func(w http.ResponseWriter, r *http.Request) {
		s, err := session.Start(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		visits, home := get[int](s, "visits"), get[address](s, "address")
		user, _ := LoggedIn[string](s, "user")
		fmt.Fprintf(w, "%s %d %v", user, visits, home)
	}
	mux.HandleFunc("/me", me)
	mux.Handle("/read", sessions.ReadOnly(http.HandlerFunc(me)))
	mux.Handle("/lazy", sessions.Lazy(http.HandlerFunc(me)))
	mux.Handle("/static", sessions.None(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	mux.HandleFunc("/public", public)
	mux.HandleFunc("/hold", func(http.ResponseWriter, *http.Request) {
		site.held <- struct{}{}
		<-site.held
	})
	mux.HandleFunc("/write", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("written", true)
	})
	mux.HandleFunc("/login", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ann")
	})
	mux.HandleFunc("/logout", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
	})
	adopt := func(ctx context.Context, s *session.Session) error {
		if site.adopt == nil {
			return nil
		}
		return site.adopt(ctx, s)
	}
	all := http.NewServeMux()
	all.Handle("/old/login", l.login)
	all.Handle("/", l.move(sessions, adopt, sessions.Handler(mux)))
	server := httptest.NewUnstartedServer(all)
	server.Listener.Close()
	server.Listener = memnet.Listen("")
	server.Start()
	t.Cleanup(server.Close)
	site.Server = server
	if site.address, err = url.Parse(server.URL); err != nil {
		t.Fatal(err)
	}
	return site
}

// public says that caches may keep the response.
func public(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=60")
	w.Header().Set("Surrogate-Control", "max-age=60")
	switch r.URL.RawQuery {
	case "write":
		_, _ = io.WriteString(w, "page")
	case "flush":
		_ = http.NewResponseController(w).Flush()
	}
}

const (
	ann    = "ann 3 {Main Street 5}"
	nobody = " 0 { 0}"
)

// A visitor is a browser.
type visitor struct {
	*site
	http.Client
}

// visitor returns a visitor with these cookies.
func (s *site) visitor(cookies ...*http.Cookie) *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.Fatal(err)
	}
	jar.SetCookies(s.address, cookies)
	transport := &http.Transport{DialContext: memnet.DialContext}
	s.Cleanup(transport.CloseIdleConnections)
	return &visitor{s, http.Client{Jar: jar, Transport: transport}}
}

// ann returns a visitor who is logged in with the old library.
func (s *site) ann() *visitor {
	v := s.visitor()
	v.want("/old/login", 200, "")
	if !v.has(s.cookie) || v.has("sid") {
		s.Fatalf("after the old login the cookies are %v", v.Jar.Cookies(s.address))
	}
	return v
}

// both returns a visitor who has a session of Latchkey, and also ann's old cookie.
func (s *site) both() *visitor {
	v := s.visitor()
	v.want("/write", 200, "")
	v.Jar.SetCookies(s.address, s.ann().Jar.Cookies(s.address))
	return v
}

func (v *visitor) want(path string, status int, body string) *http.Response {
	v.Helper()
	return v.wants(http.MethodGet, path, "", status, body)
}

// wants checks the response to a request; the body may be "*".
func (v *visitor) wants(method, path, sent string, status int, body string) *http.Response {
	v.Helper()
	r, err := http.NewRequestWithContext(v.Context(), method, v.URL+path, strings.NewReader(sent))
	if err != nil {
		v.Fatal(err)
	}
	res, err := v.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status || body != "*" && string(got) != body {
		v.Errorf("%s: %d %q, error %v; want %d %q", path, res.StatusCode, got, err, status, body)
	}
	return res
}

func (v *visitor) has(cookie string) bool {
	return slices.ContainsFunc(v.Jar.Cookies(v.address), func(c *http.Cookie) bool { return c.Name == cookie })
}
