package middleware_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// lateContext is a context whose timer is late, as it may be on a busy machine: its
// deadline is over a little before it ends.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

func withLateTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(d)
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(20*time.Millisecond))
	return lateContext{ctx, deadline}, cancel
}

// P5: a request's deadline is its own. Redis is silent for a while, for longer than the
// first request in line may wait. Those behind it may wait longer, and all are served.
func TestOneRequestsDeadlineSendsNobodyElseAway(t *testing.T) {
	t.Parallel()
	const (
		silence = 400 * time.Millisecond
		hurry   = 60 * time.Millisecond
		patient = 10
	)
	r := redistest.Real(t)
	st := store.New(r.Pool(t, 1), store.Options{Timeout: 2 * time.Second})
	entering := make(chan struct{})
	s := newSiteOn(t, st, middleware.Options{LockWait: 10 * time.Second, Mode: func(req *http.Request) middleware.Mode {
		if _, ends := req.Context().Deadline(); ends {
			entering <- struct{}{} // nobody is in line
		}
		return middleware.Exclusive
	}}, app())
	outer := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/nothing" {
			ctx, cancel := withLateTimeout(req.Context(), hurry)
			defer cancel()
			req = req.WithContext(ctx)
		}
		outer.ServeHTTP(w, req)
	})

	visitors := []*visitor{newVisitor(t), newVisitor(t), newVisitor(t)}
	for _, v := range visitors {
		v.get(s.URL+"/add").want(t, 200, "1")
	}

	r.Pause(t)
	var all sync.WaitGroup
	defer all.Wait()
	for _, v := range visitors {
		all.Go(func() {
			if a := v.get(s.URL + "/nothing"); a.err == nil && a.StatusCode == 200 {
				t.Error("a request that had no time was served by a Redis that was silent")
			}
		})
		<-entering
		for range patient {
			all.Go(func() {
				if a := v.get(s.URL + "/add"); a.err != nil || a.StatusCode != 200 {
					t.Errorf("a request with all the time in the world: %d %q %v", a.StatusCode, a.body, a.err)
				}
			})
		}
	}
	time.Sleep(silence)
	r.Resume(t)
}
