package middleware_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P4: A visitor who comes back with a login keeps it, even if a job holds the session at that moment.
func TestALoginThatAJobHoldsIsClaimed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{})
		guest := s.visitor(t)
		page := with(t, guest.cookies(s)...)
		first := browserThatGot(t, page.get(s.URL+"/login/ann"))
		list, err := s.sessions.List(t.Context(), "ann")
		must(t, err)
		var second *visitor
		var added <-chan answer
		must(t, s.sessions.Update(t.Context(), list[0].ID, func(own *session.Session) error {
			own.Set("job", "done")
			added = first.start(s.URL + "/add")
			synctest.Wait() // it is in line
			second = browserThatGot(t, page.get(s.URL+"/login/ann"))
			return nil
		}))
		(<-added).want(t, 200, "2")
		second.get(s.URL+"/user").want(t, 200, "ann")
		first.get(s.URL+"/get").want(t, 200, "2")
	})
}

// P4: A background write finds its session unclaimed. Before it can claim the session, another request moves the ID.
// The write then gets a 409, as if it had found the moved ID. Its client would never see a guest's session with the
// written value.
func TestAClaimThatCrossesALogin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newUserSite(t, r, middleware.Options{})
		o := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.Optimistic }} // holds no lock
		elsewhere := newSite(t, proxy.Pool(t, 4), o, app())
		v := newVisitor(t)
		v.get(s.URL+"/login/ann").want(t, 200, "")
		script := with(t, v.cookies(s)...)
		proxy.Inject(func(c redistest.Command) redistest.Fault {
			if c.Name == "EVALSHA" {
				return redistest.HangCommand
			}
			return redistest.Pass
		})
		answers := make(chan answer)
		go func() { answers <- script.background("GET", elsewhere.URL+"/add") }()
		synctest.Wait() // it has read the record, and is about to claim
		proxy.Inject(nil)
		v.navigate("POST", s.URL+"/login/ann").want(t, 200, "")
		proxy.Release()
		(<-answers).want(t, 409, "*")
		v.get(s.URL+"/get").want(t, 200, "0")
		v.get(s.URL+"/user").want(t, 200, "ann")
	})
}

// P5: if Redis falls silent while a request claims its session, the request does not also wait to release the lock.
func TestAClaimThatGetsNoReplyIsNotWaitedForTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s, elsewhere := newUserSite(t, r, middleware.Options{}), newSite(t, proxy.Pool(t, 4), middleware.Options{}, app())
		v := newVisitor(t).everywhere()
		v.get(s.URL+"/login/ann").want(t, 200, "")
		silent := false
		proxy.Inject(func(c redistest.Command) redistest.Fault {
			silent = silent || strings.HasPrefix(c.Name, "EVAL") // it has the lock, and is about to claim
			if silent {
				return redistest.HangCommand
			}
			return redistest.Pass
		})
		began := time.Now()
		v.get(elsewhere.URL+"/add").want(t, 503, "*")
		if took := time.Since(began); took > steady.Timeout {
			t.Errorf("the answer came after %v", took)
		}
		proxy.Inject(nil)
		proxy.Release()
	})
}

// P5: a request's deadline is its own. If it passes while the request claims its session, the requests behind it are
// served nevertheless.
func TestADeadlineDuringAClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s, elsewhere := newUserSite(t, r, middleware.Options{}), newSite(t, proxy.Pool(t, 4), middleware.Options{}, app())
		sessions := elsewhere.Config.Handler
		elsewhere.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/nothing" {
				ctx, cancel := context.WithTimeout(req.Context(), time.Second)
				defer cancel()
				req = req.WithContext(ctx)
			}
			sessions.ServeHTTP(w, req)
		})
		v := newVisitor(t).everywhere()
		v.get(s.URL+"/login/ann").want(t, 200, "")
		proxy.Inject(func(c redistest.Command) redistest.Fault {
			if strings.HasPrefix(c.Name, "EVAL") { // it has the lock, and is about to claim
				return redistest.HangCommand
			}
			return redistest.Pass
		})
		first := v.start(elsewhere.URL + "/nothing")
		synctest.Wait()
		second := v.start(elsewhere.URL + "/add")
		synctest.Wait() // it is in line
		proxy.Inject(nil)
		redistest.Elapse(time.Second + time.Millisecond)
		proxy.Release()
		(<-first).want(t, 503, "*")
		(<-second).want(t, 200, "1")
	})
}

// P7: A request that has claimed its session, and holds it, learns that it has lost the lock, as any other holder does.
func TestALostLockEndsTheContextOfWhoHasClaimed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := users(nil)
		mux.HandleFunc("/wait", func(_ http.ResponseWriter, req *http.Request) {
			loseLock(t, r, req)
			select {
			case <-req.Context().Done():
			case <-time.After(time.Minute):
			}
			if cause := context.Cause(req.Context()); !errors.Is(cause, store.ErrLost) {
				t.Errorf("the context's cause is %v", cause)
			}
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/login/ann").want(t, 200, "")
		v.get(s.URL+"/wait").want(t, 200, "") // the first request with the login
	})
}

// If a login has replaced a session, that session ends when somebody comes back with the login. The hook says so,
// even if that request fails.
func TestAHookTellsWhatGaveWayAlsoIfTheHandlerPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, path := range []string{"/get", "/panic"} {
			hooks, mux := &audit{}, users(nil)
			mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			s := newSite(t, r.Pool(t, 4), middleware.Options{Hooks: hooks.hooks()}, mux)
			page := with(t, s.visitor(t).cookies(s)...)
			page.get(s.URL+"/login/ann").want(t, 200, "")
			before, err := s.sessions.List(t.Context(), "ann")
			must(t, err)
			second := browserThatGot(t, page.get(s.URL+"/login/ann"))
			hooks.forget()
			second.get(s.URL + path)
			hooks.want(t, "end "+before[0].ID)
			_, err = s.sessions.EndAll(t.Context(), "ann")
			must(t, err)
		}
	})
}
