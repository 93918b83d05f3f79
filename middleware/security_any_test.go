package middleware_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// ASVS 7.1.2 and 7.5.2: with a row for each login in place of the number, a user sees them, and
// ends any of them, also while that session is getting a new id.
func TestAnySessionOfAUserCanBeEnded(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		var logins sync.Map // the rows: key to user
		userOf := func(s *session.Session) any {
			key, _ := session.Get[string](s, "login")
			user, _ := logins.Load(key)
			return user
		}
		mux.HandleFunc("/login-as", func(_ http.ResponseWriter, req *http.Request) {
			s, key := session.FromContext(req.Context()), rand.Text()
			logins.Store(key, req.FormValue("user"))
			s.Renew()
			s.Set("login", key)
		})
		mux.HandleFunc("/user", func(w http.ResponseWriter, req *http.Request) {
			fmt.Fprint(w, userOf(session.FromContext(req.Context())))
		})
		mux.HandleFunc("/key", func(w http.ResponseWriter, req *http.Request) {
			key, _ := session.Get[string](session.FromContext(req.Context()), "login")
			fmt.Fprint(w, key)
		})
		busy, free := make(chan struct{}), make(chan struct{})
		mux.HandleFunc("/slow-renew", func(_ http.ResponseWriter, req *http.Request) {
			close(busy)
			<-free
			session.FromContext(req.Context()).Renew()
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		laptop, phone, thief := visitAs(t, s, "ann"), visitAs(t, s, "ann"), visitAs(t, s, "ann")
		done := make(chan answer, 1)
		key := thief.get(s.URL + "/key").body
		go func() { done <- thief.get(s.URL + "/slow-renew") }()
		<-busy
		logins.Delete(key)
		close(free)
		(<-done).want(t, 200, "")
		for v, user := range map[*visitor]string{laptop: "ann", phone: "ann", thief: "<nil>"} {
			v.get(s.URL+"/user").want(t, 200, user)
		}
	})
}
