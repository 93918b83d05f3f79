package middleware_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P12: a session that was begun or renewed in this request can be remembered after a Reopen. The
// answer has one cookie, of the newest id, and it lasts as the last Remember says.
func TestRememberAfterReopen(t *testing.T) {
	t.Parallel()
	remember := func(s *session.Session) { s.Remember(month) }
	for name, test := range map[string]struct {
		begun         bool // before the request
		first, second func(*session.Session)
		age, left     time.Duration
	}{
		"begun":      {false, func(s *session.Session) { add(s) }, remember, month, month},
		"renewed":    {true, func(s *session.Session) { s.Renew() }, remember, month, month},
		"old":        {true, func(s *session.Session) { add(s) }, remember, month, month},
		"remembered": {false, func(s *session.Session) { add(s); s.Remember(month) }, func(s *session.Session) { s.Remember(48 * time.Hour) }, 48 * time.Hour, 48 * time.Hour},
		"forgotten":  {true, remember, func(s *session.Session) { s.Remember(0) }, 0, 30 * time.Minute},
		"kept":       {true, remember, func(s *session.Session) { s.Renew() }, month, month},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			mux := app()
			handle(mux, "/twice", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
				test.first(s)
				must(t, s.Commit(req.Context()))
				must(t, s.Reopen(req.Context()))
				test.second(s)
			})
			s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
			v := newVisitor(t)
			if test.begun {
				v.get(s.URL+"/add").want(t, 200, "1")
			}
			v.get(s.URL+"/twice").wantMaxAge(t, test.age)
			v.wantLeft(t, s, r, test.left)
			if v.get(s.URL+"/get").body == "0" {
				t.Error("the cookie does not open the session")
			}
		})
	}
}

// In mode Optimistic, too, Remember sets the cookie, and another's write is not lost to it.
func TestRememberInModeOptimistic(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, runs := range []int32{1, 2} {
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, _ http.ResponseWriter, req *http.Request) {
				if runs == 2 && run == 1 {
					p.another(t, "/add")
				}
				session.FromContext(req.Context()).Remember(month)
			})
			p.v.get(p.here.URL+"/page").wantMaxAge(t, month)
			p.v.wantLeft(t, p.here, r, month)
			p.wantRuns(t, runs)
			p.v.get(p.here.URL+"/get").want(t, 200, fmt.Sprint(runs))
		}
	})
}
