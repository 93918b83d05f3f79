package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// holding adds /hold to mux, which keeps its session until free is closed.
func holding(mux *http.ServeMux) (busy, free chan struct{}) {
	busy, free = make(chan struct{}), make(chan struct{})
	mux.HandleFunc("/hold", func(http.ResponseWriter, *http.Request) {
		close(busy)
		<-free
	})
	return busy, free
}

// P5: a wait ends, with an answer that says when to try again.
func TestAWaitEndsWith503(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := holding(mux)
		o := middleware.Options{LockWait: 100 * time.Millisecond}
		here := newSite(t, r.Pool(t, 4), o, mux)
		elsewhere := newSite(t, r.Pool(t, 4), o, mux)
		v := newVisitor(t)
		v.get(here.URL+"/add").want(t, 200, "1")
		done := v.start(here.URL + "/hold")
		<-busy
		for _, s := range []*site{here, elsewhere} { // in the holder's process, and in another
			a := v.get(s.URL + "/add")
			a.want(t, 503, "*")
			if a.Header.Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %v", a.Header)
			}
			if len(s.log.Lines("lock is held by ")) != 1 {
				t.Errorf("log:\n%s", s.log)
			}
		}
		close(free)
		(<-done).want(t, 200, "")
		v.get(here.URL+"/get").want(t, 200, "1")
	})
}

// P5: only so many requests may wait: many with one cookie cost the others nothing. A
// client that goes away makes room at once, even one that has sent a body, which
// net/http only notices once the body is read.
func TestTheQueueIsBoundedAndLeftAtOnce(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(method, func(t *testing.T) {
				mux := app()
				busy, free := holding(mux)
				s, v := begun(t, r, middleware.Options{MaxWaiters: 1, LockWait: time.Minute}, mux)
				held := v.start(s.URL + "/hold")
				<-busy

				// Of two more, one gets the only place, and the other is sent away.
				type returned struct {
					number int
					answer
				}
				ctx, leave := [2]context.Context{}, [2]context.CancelFunc{}
				back := make(chan returned, 2)
				for i := range 2 {
					ctx[i], leave[i] = context.WithCancel(t.Context())
					defer leave[i]()
					go func() { back <- returned{i, v.send(ctx[i], method, s.URL+"/add", strings.NewReader("a=1"))} }()
				}
				first := <-back
				first.want(t, 503, "*")
				if len(s.log.Lines("too many wait")) != 1 {
					t.Errorf("log:\n%s", s.log)
				}

				leave[1-first.number]()
				if second := <-back; !errors.Is(second.err, context.Canceled) {
					t.Errorf("the one that waited: %d %v", second.StatusCode, second.err)
				}
				eventually(t, "the place is free again", func() bool {
					// The one that gets the place gives up soon, or it would wait for a minute.
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					defer cancel()
					return v.send(ctx, http.MethodGet, s.URL+"/add", nil).StatusCode != 503
				})
				close(free)
				(<-held).want(t, 200, "")
				eventually(t, "the session is usable", func() bool { return v.get(s.URL+"/get").StatusCode == 200 })
			})
		}
	})
}

// P5: a tiny pool suffices: waiters hold no connection, and the holder can always
// release.
func TestAPoolOfTwoServesAHundred(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		pool := r.Pool(t, 2)
		for name, wait := range map[string]bool{"waiting pool": true, "pool that does not wait": false} {
			t.Run(name, func(t *testing.T) {
				pool := pool
				if !wait {
					pool = r.Pool(t, 2)
					pool.Wait = false
				}
				mux := app()
				handle(mux, "/work", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
					n, _ := session.Get[int](s, "n")
					time.Sleep(time.Millisecond) // work, while the lock is held
					s.Set("n", n+1)
				})
				st := store.New(pool, store.Options{Timeout: 10 * time.Second})
				s := newSiteOn(t, st, middleware.Options{LockWait: time.Minute}, mux)
				var crowd sync.WaitGroup
				for range 5 { // five sessions, twenty requests each
					v := newVisitor(t)
					v.get(s.URL+"/add").want(t, 200, "1")
					for range 20 {
						crowd.Go(func() {
							if a := v.get(s.URL + "/work"); a.StatusCode != 200 {
								t.Errorf("%d %s %v", a.StatusCode, a.body, a.err)
							}
						})
					}
					crowd.Go(func() { _ = v })
					defer func() { v.get(s.URL+"/get").want(t, 200, "21") }()
				}
				crowd.Wait()
			})
		}
	})
}

// P7: a process that was killed blocks its session for at most the lease.
func TestAKilledHolderBlocksForItsLeaseOnly(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		_, lock := keysOf(v.get(s.URL + "/id").body)
		began := time.Now()
		r.Do(t, "SET", lock, "killed", "PX", 300)
		v.get(s.URL+"/add").want(t, 200, "2")
		if waited := time.Since(began); waited < 200*time.Millisecond {
			t.Errorf("waited %v for a lease of 300ms: the lock was not respected", waited)
		}
	})
}

// P7: a living holder keeps its session for much longer than the lease.
func TestALivingHolderKeepsItsLock(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := pausing(mux)
		st := store.New(r.Pool(t, 4), store.Options{Lease: time.Second})
		s := newSiteOn(t, st, middleware.Options{LockWait: time.Minute}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		_, lock := keysOf(v.get(s.URL + "/id").body)
		held, next := make(chan answer, 1), make(chan answer, 1)
		go func() { held <- v.get(s.URL + "/pause") }()
		<-busy
		token, _ := r.Get(t, lock)
		go func() { next <- v.get(s.URL + "/add") }()
		time.Sleep(2500 * time.Millisecond) // more than two leases: what is tested is that time passes
		if now, _ := r.Get(t, lock); now != token || token == "" {
			t.Errorf("the lock's token was %q and is %q", token, now)
		}
		close(free)
		(<-held).want(t, 200, "stored")
		(<-next).want(t, 200, "501")
	})
}

// P7: a holder whose lock is lost learns it at once, from its context.
func TestALostLockEndsTheContext(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		for name, mode := range map[string]middleware.Mode{"exclusive": middleware.Exclusive, "lazy": middleware.Lazy} {
			t.Run(name, func(t *testing.T) {
				cause := make(chan error, 1)
				mux := http.NewServeMux()
				mux.HandleFunc("/wait", func(w http.ResponseWriter, req *http.Request) {
					s, err := session.Start(req.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if s.IsNew() {
						s.Set("a", 1)
						return
					}
					_, lock := keysOf(s.ID())
					r.Do(t, "DEL", lock)
					<-req.Context().Done()
					cause <- context.Cause(req.Context())
					fmt.Fprint(w, "nothing to save")
				})
				st := store.New(r.Pool(t, 4), store.Options{Lease: 300 * time.Millisecond})
				s := newSiteOn(t, st, middleware.Options{Mode: func(*http.Request) middleware.Mode { return mode }}, mux)
				v := newVisitor(t)
				v.get(s.URL+"/wait").want(t, 200, "")
				// It wrote nothing, so nothing was lost: the answer stands.
				v.get(s.URL+"/wait").want(t, 200, "nothing to save")
				if err := <-cause; !errors.Is(err, store.ErrLost) || !strings.Contains(err.Error(), "its key is gone") {
					t.Errorf("the context's cause is %v", err)
				}
			})
		}
	})
}
