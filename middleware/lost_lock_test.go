package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P7: a process that was killed blocks its session for at most the lease.
func TestAKilledHolderBlocksForItsLeaseOnly(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		_, lock := keysOf(v.get(s.URL + "/id").body)
		const lease = 300 * time.Millisecond
		began := time.Now()
		r.Do(t, "SET", lock, "killed", "PX", lease.Milliseconds())
		v.get(s.URL+"/add").want(t, 200, "2")
		if waited := time.Since(began); waited < lease-100*time.Millisecond || waited > lease+time.Second && !r.IsReal() {
			t.Errorf("waited %v for a lease of %v", waited, lease)
		}
	})
}

// P7: a living holder keeps its session for much longer than the lease.
func TestALivingHolderKeepsItsLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		const lease = 10 * time.Second
		s := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Lease: lease}), middleware.Options{LockWait: time.Minute}, app())
		v := s.visitor(t)
		_, lock := keysOf(v.get(s.URL + "/id").body)
		free := v.hold(s.URL + "/pause")
		token, _ := r.Get(t, lock)
		next := v.start(s.URL + "/add")
		redistest.Elapse(3 * lease)
		if now, _ := r.Get(t, lock); now != token || token == "" {
			t.Errorf("the lock's token was %q and is %q", token, now)
		}
		free().want(t, 200, "stored")
		(<-next).want(t, 200, "501")
	})
}

// P7: If a holder's lock is lost, the next renewal of the lease finds that, and ends the holder's context. The same
// holds after a Reopen.
func TestALostLockEndsTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Lazy} {
			mux := app()
			mux.HandleFunc("/wait", func(w http.ResponseWriter, req *http.Request) {
				own, err := session.Start(req.Context())
				must(t, err)
				if req.URL.RawQuery == "reopened" {
					must(t, own.Commit(req.Context()))
					must(t, own.Reopen(req.Context()))
				}
				loseLock(t, r, req)
				began := time.Now()
				<-req.Context().Done()
				if cause := context.Cause(req.Context()); !errors.Is(cause, store.ErrLost) || !strings.Contains(cause.Error(), "its key is gone") {
					t.Errorf("the context's cause is %v", cause)
				}
				fmt.Fprint(w, "nothing to save, after ", time.Since(began).Round(time.Second))
			})
			st := store.New(r.Pool(t, 4), store.Options{Lease: 9 * time.Second})
			s := newSiteOn(t, st, middleware.Options{Mode: byPath(map[string]middleware.Mode{"/wait": mode})}, mux)
			v := s.visitor(t)
			for _, query := range []string{"", "?reopened"} {
				// The handler wrote nothing, so nothing was lost, and its response stands.
				v.get(s.URL+"/wait"+query).want(t, 200, "nothing to save, after 3s")
			}
		}
	})
}
