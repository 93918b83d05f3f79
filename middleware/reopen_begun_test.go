package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// P2: once the answer has begun it cannot take a cookie to the client. What needs one is not saved,
// and the answer is cut off, so that nobody takes it for a success. A logout needs none.
func TestACommitThatNeedsACookieIsTooLateOnceTheAnswerHasBegun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		visits bool // there is a session
		change func(*session.Session)
		fails  bool
		keys   int // that it has afterwards
	}{
		"a login":       {true, func(s *session.Session) { s.Renew(); s.Set("user", "ann") }, true, 1},
		"a new session": {false, func(s *session.Session) { s.Set("user", "ann") }, true, 0},
		"a remember":    {true, func(s *session.Session) { add(s); s.Remember(month) }, true, 1},
		"a logout":      {true, (*session.Session).Destroy, false, 0},
		"a write":       {true, func(s *session.Session) { s.Set("user", "ann") }, false, 2},
		"nothing":       {false, func(s *session.Session) { s.Len() }, false, 0},
	} {
		for _, explicit := range []bool{true, false} {
			inFakeTime(t, fmt.Sprint(name, explicit), func(t *testing.T, r *redistest.Server) {
				mux := app()
				handle(mux, "/begun", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
					w.(http.Flusher).Flush()
					must(t, s.Reopen(req.Context()))
					test.change(s)
					if explicit {
						err := s.Commit(req.Context())
						if (err != nil) != test.fails || err != nil && !strings.Contains(err.Error(), "no cookie can reach the client") {
							t.Errorf("Commit = %v", err)
						}
					}
					fmt.Fprint(w, "all is well")
				})
				s := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: time.Second}, mux)
				v := newVisitor(t)
				if test.visits {
					v.get(s.URL+"/add").want(t, 200, "1")
				}
				a := v.post(s.URL + "/begun")
				if (a.err != nil) != test.fails || a.sets() {
					t.Errorf("answer %q, %v, header %v", a.body, a.err, a.Header)
				}
				if lines := s.log.Lines("kind=other", "no cookie can reach"); (len(lines) == 1) != test.fails {
					t.Errorf("log: %q", lines)
				}
				v.get(s.URL+"/len").want(t, 200, fmt.Sprint(test.keys)) // at once: the lock is free
			})
		}
	}
}

// P2: a stream whose commit has failed may reopen its session and try again.
func TestAStreamTriesAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/stream", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			w.(http.Flusher).Flush()
			must(t, s.Reopen(req.Context()))
			s.Set("n", make(chan int))
			if s.Commit(req.Context()) == nil {
				t.Error("a channel was saved")
			}
			must(t, s.Reopen(req.Context()))
			s.Set("n", 5)
			must(t, s.Commit(req.Context()))
			fmt.Fprint(w, "all is well")
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		v.post(s.URL+"/stream").want(t, 200, "all is well")
		v.get(s.URL+"/get").want(t, 200, "5")
	})
}

// A request's goroutines reopen and commit its session in turn, others read it all the while, and
// the answer begins in between. All is saved, and other requests lose nothing either.
func TestGoroutinesReopenTheSessionAtOnce(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t) // who waits for a mutex does not let time pass in a bubble
	mux := app()
	handle(mux, "/crowd", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
		s.Set("begun", true)
		must(t, s.Commit(req.Context()))
		var crowd sync.WaitGroup
		var turn sync.Mutex
		for i := range 8 {
			crowd.Go(func() {
				turn.Lock()
				defer turn.Unlock()
				must(t, s.Reopen(req.Context()))
				s.Set(fmt.Sprint("own", i), i)
				must(t, s.Commit(req.Context()))
			})
			crowd.Go(func() {
				if n := s.Len(); n < 2 || s.IsNew() || s.ID() == "" {
					t.Errorf("a goroutine sees %d keys", n)
				}
			})
		}
		turn.Lock()
		w.(http.Flusher).Flush()
		turn.Unlock()
		crowd.Wait()
	})
	sites := []*site{newSite(t, r.Pool(t, 4), middleware.Options{}, mux), newSite(t, r.Pool(t, 4), middleware.Options{}, mux)}
	v := newVisitor(t).everywhere()
	v.get(sites[0].URL+"/add").want(t, 200, "1")
	var others sync.WaitGroup
	for i := range 16 {
		others.Go(func() { v.get(sites[i%2].URL+"/set/"+fmt.Sprint("other", i)).want(t, 200, "") })
	}
	v.get(sites[0].URL+"/crowd").want(t, 200, "")
	others.Wait()
	v.get(sites[1].URL+"/len").want(t, 200, "26")
}
