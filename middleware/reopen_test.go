package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// add is app's /add, for handlers that do more.
func add(s *session.Session) int {
	n, _ := session.Get[int](s, "n")
	s.Set("n", n+1)
	return n + 1
}

// must is for what works on a good day.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// P1: a handler gives its session back for slow work, and then goes on with what is stored by
// then, which another process has written.
func TestReopenGoesOnWithWhatIsStoredByThen(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		working, done := make(chan struct{}), make(chan struct{})
		mux := app()
		handle(mux, "/upload", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("begun", true)
			must(t, s.Commit(req.Context()))
			close(working)
			<-done
			must(t, s.Reopen(req.Context()))
			fmt.Fprint(w, add(s))
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("done", true)
		})
		here, elsewhere := newSite(t, r.Pool(t, 4), middleware.Options{}, mux), newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(here.URL+"/add").want(t, 200, "1")
		tab := with(t, v.cookies(here)...)
		slow := v.start(here.URL + "/upload")
		<-working
		tab.get(elsewhere.URL+"/add").want(t, 200, "2")
		tab.get(here.URL+"/add").want(t, 200, "3")
		close(done)
		a := <-slow
		a.want(t, 200, "4")
		if a.sets() {
			t.Errorf("it sets a cookie: %v", a.Header)
		}
		v.get(here.URL+"/get").want(t, 200, "4")
		v.get(here.URL+"/len").want(t, 200, "3")
	})
}

// P2: a reopened session that the handler leaves open is saved before the answer. Other requests
// wait for it until then.
func TestAReopenedSessionIsHeld(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		open, done := make(chan struct{}), make(chan struct{})
		handle(mux, "/again", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			close(open)
			<-done
			s.Set("n", 10)
		})
		s, v := begun(t, r, middleware.Options{LockWait: 100 * time.Millisecond}, mux)
		first := v.start(s.URL + "/again")
		<-open
		v.get(s.URL+"/add").want(t, 503, "*")
		close(done)
		(<-first).want(t, 200, "")
		v.get(s.URL+"/add").want(t, 200, "11")
	})
}

// A new visitor's session is begun by the first commit and reopened by its id of then. The answer
// has one cookie, which opens it.
func TestTheAnswerHasOneCookieHoweverOftenItIsReopened(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		for name, test := range map[string]struct{ first, second func(*session.Session) }{
			"begun first":           {func(s *session.Session) { s.Set("a", 1) }, func(s *session.Session) { s.Set("b", 2) }},
			"begun first, read":     {func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }, func(s *session.Session) { s.Len() }},
			"begun second":          {func(s *session.Session) { s.Len() }, func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }},
			"asked for its id":      {func(s *session.Session) { s.ID() }, func(s *session.Session) { s.Set("a", 1); s.Set("b", 2) }},
			"begun, then renewed":   {func(s *session.Session) { s.Set("a", 1) }, func(s *session.Session) { s.Renew(); s.Set("b", 2) }},
			"renewed, then changed": {func(s *session.Session) { s.Renew(); s.Set("a", 1) }, func(s *session.Session) { s.Set("b", 2) }},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				mux := app()
				handle(mux, "/twice", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
					test.first(s)
					must(t, s.Commit(req.Context()))
					must(t, s.Reopen(req.Context()))
					if got, want := s.IsNew(), strings.HasPrefix(name, "begun second") || strings.HasPrefix(name, "asked"); got != want {
						t.Errorf("IsNew is %v after Reopen", got)
					}
					test.second(s)
					must(t, s.Commit(req.Context()))
					fmt.Fprint(w, s.ID())
				})
				s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
				v := newVisitor(t)
				a := v.get(s.URL + "/twice")
				if a.StatusCode != 200 || len(a.Header["Set-Cookie"]) != 1 || a.Header.Get("Cache-Control") != "no-store" {
					t.Fatalf("%d %q, header %v", a.StatusCode, a.body, a.Header)
				}
				v.get(s.URL+"/len").want(t, 200, "2")
				v.get(s.URL+"/id").want(t, 200, a.body)
			})
		}
	})
}

// P9: where there is no session, Commit and Reopen cost nothing.
func TestReopenWithoutASessionIsFree(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			for range 3 {
				must(t, s.Commit(req.Context()))
				must(t, s.Reopen(req.Context()))
			}
		}))
		a := newVisitor(t).get(s.URL)
		a.want(t, 200, "")
		if a.sets() || len(proxy.Commands()) > 0 {
			t.Errorf("cookie %q, commands %q", a.Header.Get("Set-Cookie"), proxy.Commands())
		}
	})
}

// P4: out means out, also for a request that has given its session back for a while. What is
// reopened is the request's own session or nothing.
// Reopen where it cannot be is a clear error, and nothing is lost.
// A goroutine that outlives its handler cannot reopen the session, nor go on waiting for it.
// P2: a second commit that fails takes the place of the answer, and says that the first one has
// not. The cookie of that stays, since nothing else leads to what was saved.
// P7: a panic after Reopen releases the lock, and saves nothing of what was done since then.
// P7: a reopened session that loses its lock ends the handler's context, and saves nothing.
// In mode Lazy a session that was started can be reopened; in mode ReadOnly it is read again, also
// while another request holds it, and stays as it is.
// Each Reopen may wait for LockWait, however long the ones before it have waited.
// P2: what a client has sent is saved although it has gone away meanwhile, if the handler wants so.
