package middleware_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

func TestADeadTokenIsRefused(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r, middleware.Options{})
		dead := p.token(t, "/begin", "")
		p.ask(t, "/logout", dead).want(t, 200, "")
		p.ask(t, "/begin", dead).want(t, 409, "*")
		p.ask(t, "/begin", dead, "Sec-Fetch-Mode", "navigate").want(t, 409, "*")
		p.ask(t, "/add", p.token(t, "/log-in", dead)).want(t, 200, "1")
	})
}

func TestNoSessionThatNobodyCanOpen(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r, middleware.Options{})
		p.ask(t, "/add", "").want(t, 500, "*")
		if keys := r.Keys(t); len(keys) != 0 {
			t.Errorf("Redis has %q", keys)
		}
		token := p.token(t, "/begin", "")
		p.ask(t, "/login", token).want(t, 500, "*")
		p.ask(t, "/add", token).want(t, 200, "11")
	})
}

func TestTokenSaysWhyThereIsNone(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r, middleware.Options{})
		token := p.token(t, "/begin", "")
		p.ask(t, "/early", token).want(t, 200, "middleware: Token before the session is saved: call Commit before")
		nothing := "middleware: Token where no session is kept: the request has none, and has begun none or ended it"
		for path, token := range map[string]string{"/token": "", "/log-out": token} {
			a := p.ask(t, path, token)
			if a.want(t, 200, ""); a.Header.Get("X-Error") != nothing {
				t.Errorf("%s: %q", path, a.Header.Get("X-Error"))
			}
		}
		if _, err := p.sessions.Token(t.Context()); !errors.Is(err, session.ErrNoSession) {
			t.Errorf("outside of a request: %v", err)
		}

		cookies := newSite(t, r.Pool(t, 1), middleware.Options{}, app())
		if _, err := cookies.sessions.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "Options.Token") {
			t.Errorf("where there are cookies: %v", err)
		}
	})
}

func TestNoTokenAfterAFailedCommit(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		var failed error
		mux := http.NewServeMux()
		handle(mux, "/begin", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
			own.Set("n", 1)
			r.Stop(t)
			_ = own.Commit(req.Context())
			_, failed = s.sessions.Token(req.Context())
		})
		s = newSite(t, r.Pool(t, 4), middleware.Options{Token: middleware.Bearer}, mux)
		newVisitor(t).post(s.URL+"/begin").want(t, 503, "*")
		if !errors.Is(failed, store.ErrUnavailable) {
			t.Errorf("Token: %v", failed)
		}
	})
}

func TestBearer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, ""},
		{[]string{"Bearer abc="}, "abc="},
		{[]string{"bEARER abc"}, "abc"},
		{[]string{"Bearer"}, ""},
		{[]string{"Bearerabc"}, ""},
		{[]string{"Basic abc"}, ""},
		{[]string{"Bearer abc", "Bearer abc"}, ""},
	} {
		r := request(http.MethodGet, "")
		r.Header["Authorization"] = c.lines
		if got := middleware.Bearer(r); got != c.want {
			t.Errorf("%q: %q, want %q", c.lines, got, c.want)
		}
	}
}

func TestOptionsOfATokensCookie(t *testing.T) {
	t.Parallel()
	st := store.New(&redis.Pool{}, store.Options{})
	for _, c := range []struct {
		cookie http.Cookie
		says   string
	}{
		{http.Cookie{}, ""},
		{http.Cookie{Name: "__Host-session"}, ""},
		{http.Cookie{Name: "api"}, ""},
		{http.Cookie{Name: "a b"}, "a b"},
		{http.Cookie{Name: "api", Secure: true}, "only Name"},
		{http.Cookie{MaxAge: 3600}, "only Name"},
	} {
		o := cookie(c.cookie)
		o.Token = middleware.Bearer
		_, err := middleware.New(st, o)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.cookie, err)
		}
	}
}
