package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gorilla/securecookie"
)

// A programSite is a site whose clients are programs, which keep tokens.
type programSite struct{ *site }

// newProgramSite serves the routes of users, and routes that change the session and respond with its token.
func newProgramSite(t *testing.T, r *redistest.Server) *programSite {
	t.Helper()
	p := &programSite{}
	mux := users(nil)
	give := func(path string, change func(*session.Session, http.ResponseWriter, *http.Request)) {
		handle(mux, path, func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			if change(s, w, req); s.Commit(req.Context()) != nil {
				return
			}
			token, err := p.sessions.Token(req.Context())
			w.Header().Set("X-Error", fmt.Sprint(err))
			fmt.Fprint(w, token)
		})
	}
	give("/token", func(*session.Session, http.ResponseWriter, *http.Request) {})
	give("/swap", func(_ *session.Session, _ http.ResponseWriter, req *http.Request) { // to the token of another session
		req.Header.Set("Authorization", "Bearer "+req.Header.Get("X-Other"))
	})
	give("/begin", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Set("n", 10) })
	give("/log-in", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Login("ann") })
	give("/remember", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Remember(month) })
	give("/log-out", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Destroy() })
	give("/ask-and-remember", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
		s.Set("asked", true)
		must(t, s.Commit(req.Context()))
		_, _ = p.sessions.Token(req.Context())
		must(t, s.Reopen(req.Context()))
		s.Remember(10 * month)
	})
	give("/stream", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
		w.(http.Flusher).Flush()
		must(t, s.Reopen(req.Context()))
		s.Renew()
		s.Remember(month)
	})
	mux.HandleFunc("/early", func(w http.ResponseWriter, req *http.Request) {
		_, err := p.sessions.Token(req.Context())
		fmt.Fprint(w, err)
	})
	p.site = newSite(t, r.Pool(t, 4), middleware.Options{Token: middleware.Bearer}, mux)
	return p
}

// ask sends a request with a token, and other headers.
func (p *programSite) ask(t *testing.T, path, token string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+path, nil)
	must(t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	a := newVisitor(t).do(req)
	if a.sets() || strings.Contains(a.Header.Get("Vary"), "Cookie") {
		t.Errorf("%s: an answer to a program has %v", path, a.Header)
	}
	return a
}

// token sends a request that is answered with a token.
func (p *programSite) token(t *testing.T, path, token string) string {
	t.Helper()
	a := p.ask(t, path, token)
	if a.StatusCode != http.StatusOK || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s: %d %q %v", path, a.StatusCode, a.body, a.Header)
	}
	return a.body
}

// With Options.Token a session lives as with a cookie, and no cookie is read or set.
func TestATokenInPlaceOfACookie(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r)
		guest := p.token(t, "/begin", "")
		p.ask(t, "/add", guest).want(t, 200, "11")
		if same := p.token(t, "/token", guest); same != guest {
			t.Error("the session has another token, but the same ID")
		}
		user := p.token(t, "/log-in", guest)
		p.ask(t, "/add", user).want(t, 200, "12")
		p.ask(t, "/get", guest).want(t, 200, "0")
		p.ask(t, "/get", "", "Cookie", "sid="+user).want(t, 200, "0")
		p.ask(t, "/get", user[1:]).want(t, 200, "0")
		a := p.ask(t, "/get", user)
		a.want(t, 200, "12")
		if a.Header.Get("Vary") != "Authorization" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("an answer made of the session has %v", a.Header)
		}
		// The handler itself sends the token to the client. So it may do that after the response has begun.
		renewed := p.ask(t, "/stream", user).body
		p.ask(t, "/get", user).want(t, 200, "0")
		p.ask(t, "/get", renewed).want(t, 200, "12")
		p.ask(t, "/log-out", renewed).want(t, 200, "")
		p.ask(t, "/get", renewed).want(t, 200, "0")
	})
}

// P14: A program's session belongs to a user as a browser's does. It is listed and ended in the same way. A login
// gives the program another token, and so does Remember.
func TestATokenOfAUser(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r)
		first := p.token(t, "/log-in", "")
		second := p.token(t, "/remember", first)
		p.ask(t, "/user", first).want(t, 200, "")
		p.ask(t, "/user", second).want(t, 200, "ann")
		list, err := p.sessions.List(t.Context(), "ann")
		if id, _ := p.sessions.ID(second); err != nil || len(list) != 1 || list[0].ID != id {
			t.Errorf("ann has %+v, %v; the token is of %s", list, err, id)
		}
		if n, err := p.sessions.EndAll(t.Context(), "ann"); n != 1 || err != nil {
			t.Errorf("EndAll: %d, %v", n, err)
		}
		p.ask(t, "/user", second).want(t, 200, "")
		p.ask(t, "/add", second).want(t, 401, "*")
	})
}

// A program with a dead token is not a person who goes to another page. When it writes, it learns that the token is
// dead. A login gives it another.
func TestADeadTokenIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r)
		dead := p.token(t, "/begin", "")
		p.ask(t, "/logout", dead).want(t, 200, "")
		p.ask(t, "/begin", dead).want(t, 401, "*")
		p.ask(t, "/begin", dead, "Sec-Fetch-Mode", "navigate").want(t, 401, "*")
		p.ask(t, "/add", p.token(t, "/log-in", dead)).want(t, 200, "1")
	})
}

// A write without a session gets a 401, and no error is logged for it at level ERROR. The response says how to log
// in. It says what is wrong with the token only if there was one, as RFC 6750 demands.
func TestAWriteWithoutATokenIs401(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r)
		dead, timedOut := p.token(t, "/begin", ""), p.token(t, "/begin", "")
		p.ask(t, "/logout", dead).want(t, 200, "")
		if id, ok := p.sessions.ID(timedOut); ok {
			r.Do(t, "DEL", recordOf(id))
		}
		const invalid = `Bearer error="invalid_token"`
		for token, want := range map[string]string{"": "Bearer", dead: invalid, timedOut: invalid, "forged": invalid} {
			a := p.ask(t, "/add", token)
			a.want(t, 401, "There is no session, or it has ended. Nothing was saved. Please log in.")
			if got := a.Header["Www-Authenticate"]; len(got) != 1 || got[0] != want || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("with %.10q: %q, want %q; all is %v", token, got, want, a.Header)
			}
		}
		if log := p.log.String(); strings.Contains(log, "ERROR") || len(p.log.Lines("status=401")) != 4 {
			t.Errorf("the log is\n%s", log)
		}
	})
}

// At the end of the handler nobody can give a new token to the client any more. So no session begins
// there that nobody can open, and none gets an ID that nobody knows.
func TestNoSessionThatNobodyCanOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r)
		p.ask(t, "/add", "").want(t, 401, "*")
		p.ask(t, "/login", "").want(t, 500, "*")
		if keys := r.Keys(t); len(keys) != 0 {
			t.Errorf("Redis has %q", keys)
		}
		token := p.token(t, "/begin", "")
		p.ask(t, "/login", token).want(t, 500, "*")
		p.ask(t, "/add", token).want(t, 200, "11")
	})
}

// Remember changes only a guest's record. The token stays if its signature lasts until the new end, and otherwise it
// is signed anew.
func TestRememberWithAToken(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r)
		token := p.token(t, "/begin", "")
		if p.token(t, "/remember", token) != token {
			t.Error("the token has changed, though its signature lasts for longer than the session")
		}
		p.ask(t, "/add", p.token(t, "/ask-and-remember", "")).want(t, 200, "1") // begun in the same request

		known := secret.New()
		old := sign(testKey, "sid", time.Now().Add(-300*24*time.Hour), known.Bytes())
		must(t, records.Of(store.New(r.Pool(t, 1), store.Options{})).Create(t.Context(), known.ID(), []byte("{}"), records.Terms{}))
		again := p.token(t, "/ask-and-remember", old)
		if id, ok := p.sessions.ID(again); again == old || !ok || id != known.ID() {
			t.Errorf("the token's signature ends before the session, and was not made anew: %q %v", id, ok)
		}
	})
}

// Token returns why there is no token.
func TestTokenSaysWhyThereIsNone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r)
		token := p.token(t, "/begin", "")
		p.ask(t, "/early", token).want(t, 200, "middleware: Token before the session is saved: call Commit first")
		nothing := "middleware: Token without a stored session: the request has no session, or has ended it"
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
			t.Errorf("with cookies: %v", err)
		}

		swapped := p.ask(t, "/swap", p.token(t, "/begin", ""), "X-Other", p.token(t, "/log-in", ""))
		if swapped.want(t, 200, ""); swapped.Header.Get("X-Error") != nothing {
			t.Errorf("for a header that the handler has changed: %q", swapped.Header.Get("X-Error"))
		}

		var failed error
		handler := newSessions(t, r, middleware.Options{Token: middleware.Bearer})
		code := serveOnce(t, handler.Handler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 1)
			r.Stop(t)
			_ = session.FromContext(req.Context()).Commit(req.Context())
			_, failed = handler.Token(req.Context())
		}))).Code
		if code != 503 || !errors.Is(failed, store.ErrUnavailable) {
			t.Errorf("after a commit that failed: %d, %v", code, failed)
		}
	})
}

// A server that is not an http.Handler verifies a token with ID, and changes the session by Update.
func TestTheIDOfAToken(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r)
		token := p.token(t, "/begin", "")
		id, ok := p.sessions.ID(token)
		if !ok {
			t.Fatal("the token is not genuine")
		}
		must(t, p.sessions.Update(t.Context(), id, func(s *session.Session) error { s.Set("n", 20); return nil }))
		p.ask(t, "/get", token).want(t, 200, "20")
		for _, forged := range []string{"", id, token[:len(token)-4]} {
			if id, ok := p.sessions.ID(forged); ok || id != "" {
				t.Errorf("%q is genuine, of %q", forged, id)
			}
		}
	})
}

// Bearer returns a token in the form of RFC 6750, if there is exactly one.
func TestBearer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{nil, ""},
		{[]string{"Bearer abc="}, "abc="},
		{[]string{"bEARER abc"}, "abc"},
		{[]string{"Bearer  abc"}, "abc"},
		{[]string{"Bearer   a-b._c~d+e/f=="}, "a-b._c~d+e/f=="},
		{[]string{"Bearer"}, ""},
		{[]string{"Bearer "}, ""},
		{[]string{"Bearer =="}, ""},
		{[]string{"Bearer a=b"}, ""},
		{[]string{"Bearer abc def"}, ""},
		{[]string{"Bearer abc, def"}, ""},
		{[]string{"Bearer\tabc"}, ""},
		{[]string{`Bearer "abc"`}, ""},
		{[]string{"Bearer token=abc"}, ""},
		{[]string{"Bearer äbc"}, ""},
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

// This is the guide's program for scripts of another site. The scripts pass the protection, learn that their token is
// dead, and can read that response: headers that are set around the sessions survive an error.
func TestScriptsOfAnotherSiteLearnThatTheirTokenIsDead(t *testing.T) { // not parallel, since examples share variables
	st := store.New(redistest.Embedded(t).Pool(t, 4), steady)
	var log logtest.Buffer
	sessions, _ = middleware.New(st, middleware.Options{Keys: [][]byte{testKey}, Token: middleware.Bearer, Logger: log.Logger()})
	mux = app()
	ExampleOptions_token_cors()
	send := func(method, origin, token string) *http.Response {
		req := httptest.NewRequest(method, "https://api.example.com/add", nil)
		req.Header.Set("Origin", origin)
		req.Header.Set("Sec-Fetch-Site", "same-site")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		server.Handler.ServeHTTP(w, req)
		return w.Result()
	}
	const app, invalid = "https://app.example.com", `Bearer error="invalid_token"`
	unknown, err := securecookie.New(testKey, nil).SetSerializer(securecookie.NopEncoder{}).Encode("__Host-session", make([]byte, 32))
	must(t, err)
	for _, c := range []struct {
		method, origin, token string
		status                int
		challenge             string
	}{
		{"OPTIONS", app, "", 200, ""},
		{"POST", app, unknown, 401, invalid},
		{"POST", app, "garbage", 401, invalid},
		{"POST", app, "", 401, "Bearer"},
		{"POST", "https://evil.example", unknown, 403, ""},
	} {
		res := send(c.method, c.origin, c.token)
		h := res.Header
		if res.StatusCode != c.status || h.Get("Www-Authenticate") != c.challenge || h.Get("Access-Control-Allow-Origin") != app {
			t.Errorf("%s from %s: %d %v; want %d %q", c.method, c.origin, res.StatusCode, h, c.status, c.challenge)
		}
	}
	if lines := log.Lines("session failed"); len(lines) != 3 || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("want three failures in the log, none at level ERROR:\n%s", log.String())
	}
}
