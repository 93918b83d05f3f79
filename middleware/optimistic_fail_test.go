package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P5: The wait for the second run has the bounds of any other wait.
func TestTheWaitForTheSecondRunIsBounded(t *testing.T) {
	t.Parallel()
	for what, bound := range map[string]time.Duration{"LockWait": 10 * time.Second, "the request's deadline": time.Second, "the client": time.Second} {
		inFakeTime(t, what, func(t *testing.T, r *redistest.Server) {
			p := newPair(t, r, middleware.Options{}, func(p *pair, _ int32, _ http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				p.redis.Do(t, "SET", p.record(t)+".lock", "another", "PX", 60_000)
				if what == "the client" {
					<-req.Context().Done()
				}
			})
			ctx := t.Context()
			switch what {
			case "the request's deadline":
				p.here.Config.Handler = http.TimeoutHandler(p.here.Config.Handler, bound, "too late")
			case "the client":
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, bound)
				defer cancel()
			}
			began := time.Now()
			if a := p.v.send(ctx, http.MethodGet, p.here.URL+"/page", nil); a.StatusCode == http.StatusOK {
				t.Error("the request was served")
			}
			if took := time.Since(began); took != bound {
				t.Errorf("it took %v, want %v", took, bound)
			}
			redistest.Elapse(2 * time.Second) // the commit waits for one more second without a client
			if len(p.here.log.Lines("session failed")) != 1 {
				t.Errorf("the request is not over; log:\n%s", p.here.log)
			}
			p.wantRuns(t, 1)
			r.Do(t, "DEL", p.record(t)+".lock")
			p.v.get(p.here.URL+"/get").want(t, 200, "1")
		})
	}
}

// P2: a client that goes away does not undo its request, if the session is free within a second.
func TestAClientThatGoesAwayUndoesNothing(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(s *session.Session){
		"Destroy":  (*session.Session).Destroy,
		"Renew":    (*session.Session).Renew,
		"Remember": func(s *session.Session) { s.Remember(month) },
		"Set":      func(s *session.Session) { s.Set("set", 1) },
	} {
		for name, busy := range map[string]bool{"free": false, "busy": true} {
			inFakeTime(t, what+", "+name, func(t *testing.T, r *redistest.Server) {
				mux, ran, key := app(), make(chan struct{}), ""
				handle(mux, "/page", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
					do(s)
					if busy {
						r.Do(t, "SET", key+".lock", "another", "PX", 60_000)
					}
					close(ran)
					<-req.Context().Done()
				})
				s := newSiteOn(t, store.New(r.Pool(t, 4), steady), middleware.Options{Mode: optimisticGets, LockWait: time.Minute}, mux)
				v := s.visitor(t)
				key = recordOf(v.get(s.URL + "/id").body)
				before, _ := r.Get(t, key)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-ran; cancel() }()
				if a := v.send(ctx, http.MethodGet, s.URL+"/page", nil); a.err == nil {
					t.Errorf("it was answered: %d", a.StatusCode)
				}
				redistest.Elapse(500 * time.Millisecond)
				if busy {
					r.Do(t, "DEL", key+".lock")
					redistest.Elapse(500 * time.Millisecond)
				}
				if after, _ := r.Get(t, key); after == before || r.Exists(t, key+".lock") {
					t.Error("nothing was done, or the session is still held")
				}
				if failed := s.log.Lines("session failed"); len(failed) > 0 {
					t.Errorf("%v", failed)
				}
			})
		}
	}
}

// A panic in the first run saves nothing, and there is no second run. A panic in the second run releases the session.
func TestAPanicInAnOptimisticHandler(t *testing.T) {
	t.Parallel()
	for in := range int32(2) {
		inFakeTime(t, fmt.Sprintf("run %d panics", in+1), func(t *testing.T, r *redistest.Server) {
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, _ http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				if run == 1 {
					p.another(t, "/add")
				}
				if run == in+1 {
					panic(http.ErrAbortHandler)
				}
			})
			wire := dial(t, p.here.Server) // a client would repeat the GET
			wire.send("GET /page HTTP/1.1\r\nHost: x\r\nCookie: " + p.v.cookie(p.here).String() + "\r\n\r\n")
			if a := wire.read(); a.err == nil {
				t.Errorf("run %d has panicked, and the answer is %d %q", in+1, a.StatusCode, a.body)
			}
			p.wantRuns(t, in+1)
			p.v.get(p.here.URL+"/get").want(t, 200, "2")
			p.wantFree(t)
		})
	}
}
