package middleware_test

import (
	"context"
	"errors"
	"fmt"
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

// P4: out means out, also for a request that has given its session back for a while. What is
// reopened is the request's own session or nothing.
func TestReopenOfASessionThatIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for name, over := range map[string]func(s *site, tab *visitor, id string){
			"logout": func(s *site, tab *visitor, _ string) { tab.get(s.URL+"/logout").want(t, 200, "") },
			"login":  func(s *site, tab *visitor, _ string) { tab.get(s.URL+"/login").want(t, 200, "") },
			"time":   func(_ *site, _ *visitor, id string) { r.Do(t, "DEL", recordOf(id)) },
			"itself": func(*site, *visitor, string) {},
		} {
			var s *site
			var tab *visitor
			mux := app()
			handle(mux, "/slow", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
				if name == "itself" {
					own.Destroy()
				}
				must(t, own.Commit(req.Context()))
				over(s, tab, own.ID())
				for range 2 { // it stays so
					err := own.Reopen(req.Context())
					if !errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound) != (name == "time") || middleware.Status(err) != 409 {
						t.Errorf("%s: Reopen = %v", name, err)
					}
				}
				fmt.Fprint(w, "sorry")
			})
			s, v := begun(t, r, middleware.Options{}, mux)
			tab = with(t, v.cookies(s)...)
			a := v.get(s.URL + "/slow")
			a.want(t, 200, "sorry")
			if a.sets() != (name == "itself") || len(s.log.Lines("kind=gone", "Reopen")) != 2 {
				t.Errorf("%s: header %v, log:\n%s", name, a.Header, s.log)
			}
		}
	})
}

// Reopen where it cannot be is a clear error, and nothing is lost.
func TestReopenWhereItCannotBe(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	overdue, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for name, test := range map[string]struct {
		do     func(s *session.Session, ctx context.Context) error
		want   error // nil: any
		status int
		n      string // what is stored
	}{
		"before Commit": {func(s *session.Session, ctx context.Context) error { s.Set("n", 5); return s.Reopen(ctx) },
			session.ErrOpen, 200, "5"},
		"twice": {func(s *session.Session, ctx context.Context) error {
			_ = s.Commit(ctx)
			must(t, s.Reopen(ctx))
			s.Set("n", 5)
			return s.Reopen(ctx)
		}, session.ErrOpen, 200, "5"},
		"after its context": {func(s *session.Session, ctx context.Context) error {
			s.Set("n", 5)
			_ = s.Commit(ctx)
			return s.Reopen(canceled)
		}, context.Canceled, 200, "5"},
		"after its deadline": {func(s *session.Session, ctx context.Context) error {
			s.Set("n", 5)
			_ = s.Commit(ctx)
			return s.Reopen(overdue)
		}, context.DeadlineExceeded, 200, "5"},
		"after a commit that failed": {func(s *session.Session, ctx context.Context) error {
			s.Set("n", make(chan int))
			_ = s.Commit(ctx)
			err := s.Reopen(ctx)
			s.Set("n", 5)
			return err
		}, nil, 500, "1"},
		"after a late change": {func(s *session.Session, ctx context.Context) error {
			s.Set("n", 5)
			_ = s.Commit(ctx)
			s.Set("n", 6)
			err := s.Reopen(ctx)
			s.Set("n", 7)
			return err
		}, session.ErrClosed, 500, "5"},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			mux := app()
			mux.HandleFunc("/reopen", func(_ http.ResponseWriter, req *http.Request) {
				err := test.do(session.FromContext(req.Context()), req.Context())
				if err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("Reopen = %v, want %v", err, test.want)
				}
			})
			s, v := begun(t, r, middleware.Options{}, mux)
			v.get(s.URL+"/reopen").want(t, test.status, "*")
			v.get(s.URL+"/get").want(t, 200, test.n)
		})
	}
}

// A goroutine that outlives its handler cannot reopen the session, nor go on waiting for it.
func TestReopenEndsWithTheHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		errs := make(chan error, 2)
		holding := make(chan *store.Hold, 1)
		st := store.New(r.Pool(t, 4), store.Options{})
		handle(mux, "/leave", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			h, err := st.Take(t.Context(), s.ID(), store.Terms{})
			must(t, err)
			holding <- h
			go func() {
				errs <- s.Reopen(context.WithoutCancel(req.Context())) // waits for h
				errs <- s.Reopen(context.WithoutCancel(req.Context()))
			}()
			synctest.Wait() // the first one waits
		})
		s := newSiteOn(t, st, middleware.Options{LockWait: time.Minute}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		v.get(s.URL+"/leave").want(t, 200, "")
		for range 2 {
			if err := <-errs; err == nil || !strings.Contains(err.Error(), "after the handler has returned") {
				t.Errorf("Reopen = %v", err)
			}
		}
		(<-holding).Release(t.Context())
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}

// P2: a second commit that fails takes the place of the answer, and says that the first one has
// not. The cookie of that stays, since nothing else leads to what was saved.
func TestASecondCommitThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/twice", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			s.Set("n", 5)
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("n", 6)
			loseLock(t, r, req)
			fmt.Fprint(w, "all is well")
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		for cookies := range 2 { // with a session, and without
			if cookies == 0 {
				v.get(s.URL+"/add").want(t, 200, "1")
			} else {
				v = newVisitor(t)
			}
			a := v.get(s.URL + "/twice")
			a.want(t, 503, notAllSaved)
			if len(a.Header["Set-Cookie"]) != cookies || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("header %v", a.Header)
			}
			v.get(s.URL+"/get").want(t, 200, "5")
		}
	})
}

// P7: a panic after Reopen releases the lock, and saves nothing of what was done since then.
func TestAPanicAfterReopen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/panic", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			s.Set("n", 5)
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("n", 6)
			panic(http.ErrAbortHandler)
		})
		s, v := begun(t, r, middleware.Options{LockWait: time.Second}, mux)
		if a := v.post(s.URL + "/panic"); a.err == nil {
			t.Errorf("answered with %d", a.StatusCode)
		}
		v.get(s.URL+"/add").want(t, 200, "6")
	})
}

// P7: a reopened session that loses its lock ends the handler's context, and saves nothing.
func TestALockThatIsLostAfterReopenEndsTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/held", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, s.Commit(req.Context()))
			must(t, s.Reopen(req.Context()))
			s.Set("n", 5)
			<-req.Context().Done() // MaxHold is over
			if cause := context.Cause(req.Context()); !errors.Is(cause, store.ErrLost) {
				t.Errorf("cause %v", cause)
			}
		})
		s, v := begun(t, r, middleware.Options{MaxHold: 200 * time.Millisecond}, mux)
		v.get(s.URL+"/held").want(t, 503, "*")
		v.get(s.URL+"/add").want(t, 200, "2")
	})
}
