package middleware_test

import (
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// A program's session belongs to a user as a browser's does: it is listed, and ended, and its token is
// another one after the login, and after Remember.
func TestATokenOfAUser(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		var p *programSite
		answerWithToken := func(change func(*session.Session)) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s := session.FromContext(r.Context())
				if change(s); s.Commit(r.Context()) != nil {
					return
				}
				token, err := p.sessions.Token(r.Context())
				if err != nil {
					t.Error(err)
				}
				_, _ = w.Write([]byte(token))
			})
		}
		mux := users(nil)
		mux.Handle("/log-in", answerWithToken(func(s *session.Session) { s.Login("ann") }))
		mux.Handle("/remember", answerWithToken(func(s *session.Session) { s.Remember(month) }))
		p = &programSite{newSite(t, r.Pool(t, 4), middleware.Options{Token: middleware.Bearer}, mux)}

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
		p.ask(t, "/add", second).want(t, 409, "*")
	})
}
