package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// lateContext is a context whose timer is late, as it may be on a busy machine: its deadline passes a little before
// it ends.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// P5: A deadline concerns only its own request. Redis is silent for longer than the first request in line may wait.
// The requests behind it may wait longer, and all of them are served.
func TestOneRequestsDeadlineSendsNobodyElseAway(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		s := newSite(t, r.Pool(t, 1), middleware.Options{}, mux)
		outer := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/nothing" {
				deadline := time.Now().Add(time.Second)
				ctx, cancel := context.WithDeadline(req.Context(), deadline.Add(20*time.Millisecond))
				defer cancel()
				req = req.WithContext(lateContext{ctx, deadline})
			}
			outer.ServeHTTP(w, req)
		})
		visitors := []*visitor{newVisitor(t), newVisitor(t), newVisitor(t)}
		for _, v := range visitors {
			v.get(s.URL+"/add").want(t, 200, "1")
		}

		r.Pause(t)
		var all sync.WaitGroup
		for _, v := range visitors {
			all.Go(func() {
				if a := v.get(s.URL + "/nothing"); a.err == nil && a.StatusCode == 200 {
					t.Error("Redis was silent, and a request was served after its deadline")
				}
			})
			synctest.Wait() // it is in line
			for range 10 {
				all.Go(func() {
					if a := v.get(s.URL + "/add"); a.err != nil || a.StatusCode != 200 {
						t.Errorf("a request without a deadline: %d %q %v", a.StatusCode, a.body, a.err)
					}
				})
			}
		}
		redistest.Elapse(5 * time.Second)
		r.Resume(t)
		all.Wait()
	})
}

// withDeadlines serves mux with sessions, inside a handler that gives each request a deadline of one second.
func withDeadlines(t *testing.T, r *redistest.Server, mode middleware.Mode, mux http.Handler) *site {
	t.Helper()
	o := middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }}
	return around(t, r, o, func(sessions func(http.Handler) http.Handler) http.Handler {
		inner := sessions(mux)
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			ctx, cancel := context.WithTimeout(req.Context(), time.Second)
			defer cancel()
			inner.ServeHTTP(w, req.WithContext(ctx))
		})
	})
}

// P2: If a request's deadline has passed, whoever set it has already sent a response. So nothing of the request is
// saved, however it ends, and it sets no cookie. A request that has changed nothing loses nothing, and gets its usual
// response.
func TestARequestWhoseDeadlineIsOverSavesNothing(t *testing.T) {
	t.Parallel()
	endings := map[string]func(w http.ResponseWriter, req *http.Request){
		"end":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") },
		"flush": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"commit": func(_ http.ResponseWriter, req *http.Request) {
			s, _ := session.Start(req.Context())
			if err := s.Commit(req.Context()); !s.IsNew() && !errors.Is(err, context.DeadlineExceeded) {
				panic(fmt.Sprint("Commit = ", err))
			}
		},
	}
	for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Lazy} {
		inFakeTime(t, mode.String(), func(t *testing.T, r *redistest.Server) {
			mux := http.NewServeMux()
			mux.HandleFunc("/{change}/{ending}", func(w http.ResponseWriter, req *http.Request) {
				s, err := session.Start(req.Context())
				must(t, err)
				if change := changes[req.PathValue("change")]; change != nil {
					change(s)
				}
				<-req.Context().Done()
				endings[req.PathValue("ending")](w, req)
			})
			mux.HandleFunc("/count", func(w http.ResponseWriter, req *http.Request) {
				s, err := session.Start(req.Context())
				must(t, err)
				fmt.Fprint(w, add(s))
			})
			s := withDeadlines(t, r, mode, mux)
			v := newVisitor(t)
			v.get(s.URL+"/count").want(t, 200, "1")
			count := 1
			for change := range changes {
				for ending := range endings {
					a := v.get(s.URL + "/" + change + "/" + ending)
					a.want(t, 503, "*")
					if b := newVisitor(t).get(s.URL + "/" + change + "/" + ending); a.sets() || b.sets() {
						t.Errorf("%s, %s: %v %v", change, ending, a.Header, b.Header)
					}
					count++
					v.get(s.URL+"/count").want(t, 200, fmt.Sprint(count))
				}
			}
			v.get(s.URL+"/nothing/end").want(t, 200, "done")
			v.get(s.URL+"/count").want(t, 200, fmt.Sprint(count+1))
		})
	}
}
