package middleware_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A programSite is one whose clients are programs, which keep tokens.

type programSite struct{ *site }

// newProgramSite serves app, with logins that answer with the token.

func newProgramSite(t *testing.T, r *redistest.Server, o middleware.Options) *programSite {
	t.Helper()
	p := &programSite{}
	o.Token = middleware.Bearer
	mux := rememberer()
	give := func(w http.ResponseWriter, r *http.Request) {
		err := session.FromContext(r.Context()).Commit(r.Context())
		if err == nil {
			var token string
			token, err = p.sessions.Token(r.Context())
			w.Header().Set("X-Error", fmt.Sprint(err))
			fmt.Fprint(w, token)
		}
	}
	mux.HandleFunc("/token", give)
	mux.HandleFunc("/begin", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("n", 10)
		give(w, r)
	})
	mux.HandleFunc("/log-in", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Renew()
		give(w, r)
	})
	mux.HandleFunc("/log-out", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
		give(w, r)
	})
	mux.HandleFunc("/early", func(w http.ResponseWriter, r *http.Request) {
		_, err := p.sessions.Token(r.Context())
		fmt.Fprint(w, err)
	})
	handle(mux, "/ask-and-remember", func(s *session.Session, w http.ResponseWriter, r *http.Request) {
		s.Set("asked", true)
		_ = s.Commit(r.Context())
		_, _ = p.sessions.Token(r.Context())
		if err := s.Reopen(r.Context()); err != nil {
			t.Error(err)
		}
		s.Remember(10 * month)
		give(w, r)
	})
	mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		s := session.FromContext(r.Context())
		if err := s.Reopen(r.Context()); err != nil {
			t.Error(err)
		}
		s.Renew()
		s.Remember(month)
		give(w, r)
	})
	p.site = newSite(t, r.Pool(t, 4), o, mux)
	return p
}

// ask sends a request with a token, and other headers.

func (p *programSite) ask(t *testing.T, path, token string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
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
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r, middleware.Options{})
		guest := p.token(t, "/begin", "")
		p.ask(t, "/add", guest).want(t, 200, "11")
		if same := p.token(t, "/token", guest); same != guest {
			t.Error("the session has another token, but the same id")
		}
		user := p.token(t, "/log-in", guest)
		p.ask(t, "/add", user).want(t, 200, "12")
		p.ask(t, "/get", guest).want(t, 200, "0")
		p.ask(t, "/get", "", "Cookie", "sid="+user).want(t, 200, "0")
		p.ask(t, "/get", user[1:]).want(t, 200, "0")

		a := p.ask(t, "/get", user)
		a.want(t, 200, "12")
		if a.Header.Get("Vary") != "Authorization" || a.Header.Get("Cache-Control") != "private" {
			t.Errorf("an answer made of the session has %v", a.Header)
		}
		p.ask(t, "/log-out", user).want(t, 200, "")
		p.ask(t, "/get", user).want(t, 200, "0")
	})
}

// A program that has a dead token is not a person who goes to another page: it learns that the token

// is dead when it writes, and a login gives it another.

// At the end of the handler nobody can give a new token to the client any more. So no session begins

// there that nobody can open, and none gets an id that nobody knows.

// What takes the token to the client is up to the handler, so it may do so in an answer that has

// begun, where no cookie can be set any more.

func TestATokenAfterTheAnswerHasBegun(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r, middleware.Options{})
		before := p.token(t, "/begin", "")
		a := p.ask(t, "/stream", before)
		a.want(t, 200, "*")
		p.ask(t, "/add", a.body).want(t, 200, "11")
		p.ask(t, "/get", before).want(t, 200, "0")
	})
}

// Remember changes the record alone: the token is good for as long, or is signed anew.

func TestRememberWithAToken(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r, middleware.Options{})
		token := p.token(t, "/begin", "")
		p.ask(t, "/remember?for=720h", token).want(t, 200, "")
		id, _ := p.sessions.ID(token)
		info, err := p.sessions.Peek(t.Context(), id)
		if left := time.Until(info.Expires); err != nil || left > month || left < month-time.Minute {
			t.Errorf("the session lasts for %v, %v", left, err)
		}
		if p.token(t, "/token", token) != token {
			t.Error("the token has changed, though its signature lasts for longer than the session")
		}

		p.ask(t, "/add", p.token(t, "/ask-and-remember", "")).want(t, 200, "1") // begun in the same request

		st := store.New(r.Pool(t, 1), store.Options{})
		for _, paths := range [][]string{{"/remember?for=7200h", "/token"}, {"/ask-and-remember"}} {
			known := secret.New()
			old := sign(testKey, "sid", time.Now().Add(-300*24*time.Hour), known.Bytes())
			if err := st.Create(t.Context(), known.ID(), []byte("{}"), store.Terms{}); err != nil {
				t.Fatal(err)
			}
			var a answer
			for _, path := range paths {
				a = p.ask(t, path, old)
				a.want(t, 200, "*")
			}
			if id, ok := p.sessions.ID(a.body); a.body == old || !ok || id != known.ID() {
				t.Errorf("%s: the token's signature ends before the session, and was not made anew: %q %v", paths, id, ok)
			}
		}
	})
}

// Token says why there is none.

// A commit that has failed gives no token.

// A server that is no http.Handler verifies a token with ID, and changes the session by Update.

func TestTheIDOfAToken(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		p := newProgramSite(t, r, middleware.Options{})
		token := p.token(t, "/begin", "")
		id, ok := p.sessions.ID(token)
		if !ok {
			t.Fatal("the token is not genuine")
		}
		err := p.sessions.Update(t.Context(), id, func(s *session.Session) error { s.Set("n", 20); return nil })
		if err != nil {
			t.Fatal(err)
		}
		p.ask(t, "/get", token).want(t, 200, "20")
		raw := secret.New()
		for name, forged := range map[string]string{
			"none":         "",
			"an id":        id,
			"shortened":    token[:len(token)-4],
			"another key":  sign(bytes.Repeat([]byte("x"), 32), "sid", time.Now(), raw.Bytes()),
			"another name": sign(testKey, "other", time.Now(), raw.Bytes()),
			"too old":      sign(testKey, "sid", time.Now().Add(-401*24*time.Hour), raw.Bytes()),
		} {
			if id, ok := p.sessions.ID(forged); ok || id != "" {
				t.Errorf("%s: genuine, of %q", name, id)
			}
		}
		if id, ok := p.sessions.ID(sign(testKey, "sid", time.Now(), raw.Bytes())); !ok || id != raw.ID() {
			t.Errorf("a genuine one is of %q, %v", id, ok)
		}
	})
}

// With tokens there is no cookie, so nothing of one but its name may be chosen.
