package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P5: in mode Lazy, too, a request waits for at most LockWait in all, however often
// its handler calls Start. When the time is used up each further Start is one try,
// which succeeds once the session is free.
func TestARequestWaitsOnceHoweverOftenItStarts(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		const lockWait = 500 * time.Millisecond
		mux := app()
		busy, free := holding(mux)
		holder := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		freed := make(chan struct{})
		lazy := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			began := time.Now()
			for range 5 {
				if _, err := session.Start(req.Context()); !errors.Is(err, store.ErrTimeout) {
					t.Errorf("the session is held, and Start says %v", err)
				}
			}
			if waited := time.Since(began); waited < lockWait || waited > 4*lockWait { // five times were 5
				t.Errorf("waited %v, want %v in all", waited, lockWait)
			}
			close(free)
			<-freed
			s, err := session.Start(req.Context())
			if err != nil {
				t.Errorf("the session is free, and Start says %v", err)
				return
			}
			n, _ := session.Get[int](s, "n")
			fmt.Fprint(w, n)
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{
			LockWait: lockWait,
			Mode:     func(*http.Request) middleware.Mode { return middleware.Lazy },
		}, lazy)
		v := newVisitor(t)
		v.get(holder.URL+"/add").want(t, 200, "1")
		held := make(chan answer, 1)
		go func() {
			held <- v.get(holder.URL + "/hold")
			close(freed)
		}()
		<-busy
		v.get(s.URL).want(t, 200, "1")
		(<-held).want(t, 200, "")
	})
}
