package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P1, P4: increments that are made in every way there is, among reads, logins and logouts, are
// linearizable, in two processes.
func TestHistoriesWithReopenDiscardAndUpdate(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		var sites history.Sites
		for range 2 {
			sites.Add(historianOn(t, store.New(r.Pool(t, 8), steady)))
		}
		if sum := visitHistorians(t, &sites, true, 6, 200*time.Millisecond); sum.Silent > 0 {
			t.Errorf("%+v", sum)
		}
	})
}

// P1, P3, P4: so they are over networks that lose commands and replies, and if locks are deleted.
// Every answer is right, and every write that was answered is kept.
func TestHistoriesWithReopenDiscardAndUpdateOverFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]redistest.Fault{
		"locks are deleted":   redistest.Pass,
		"replies are lost":    redistest.DropReply,
		"commands are lost":   redistest.DropCommand,
		"replies never come":  redistest.Hang,
		"commands never come": redistest.HangCommand,
	} {
		for with, clients := range map[string]int{"": 12, ", with logins": 5} {
			inFakeTime(t, name+with, func(t *testing.T, r *redistest.Server) {
				struck := 0
				var sites history.Sites
				for range 2 {
					p := redistest.NewProxy(t, r)
					sites.Add(historianOn(t, store.New(p.Pool(t, 8), store.Options{Lease: time.Second, Timeout: 100 * time.Millisecond})))
					p.Inject(func(cmd redistest.Command) redistest.Fault {
						if rand.IntN(50) > 0 {
							return redistest.Pass
						}
						struck++
						if fault == redistest.Pass && len(cmd.Args) > 0 && strings.HasSuffix(cmd.Args[0], ".lock") {
							r.Do(t, "DEL", cmd.Args[0])
						}
						return fault
					})
				}
				visitHistorians(t, &sites, with != "", clients, time.Second)
				redistest.Elapse(time.Minute) // until nobody tries again
				if struck == 0 {
					t.Error("nothing was lost")
				}
			})
		}
	}
}

// historianOn serves a historian.
func historianOn(t *testing.T, st *store.Store) (url string) {
	h := &historian{}
	s := newSiteOn(t, st, middleware.Options{Mode: readsOnly}, h)
	h.sessions = s.sessions
	return s.URL
}

// visitHistorians makes requests for a while, from several clients, and checks what they saw.
func visitHistorians(t *testing.T, sites *history.Sites, logins bool, clients int, long time.Duration) history.Summary {
	t.Helper()
	v := &history.Visitor{HTTP: newVisitor(t).Client, Site: sites.Any, Logins: logins,
		Reads: []string{"/count", "/count/again"}, Writes: []string{"/incr", "/incr/reopen", "/incr/discard", "/incr/update"}}
	v.HTTP.Jar = nil // it has cookies of its own
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	seed := rand.Uint64()
	v.Run(ctx, clients, seed)
	if err := v.Check(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	sum := v.Summary()
	if sum.Writes == 0 {
		t.Errorf("no write was answered: %+v", sum)
	}
	return sum
}

func readsOnly(r *http.Request) middleware.Mode {
	if r.Method == http.MethodGet {
		return middleware.ReadOnly
	}
	return middleware.Exclusive
}

// A historian is what the visitor asks.
type historian struct{ sessions *middleware.Sessions }

func (h *historian) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	<-time.After(time.Duration(rand.IntN(5000)) * time.Microsecond) // it works
	s := session.FromContext(r.Context())
	switch r.URL.Path {
	case "/reset":
		s.Clear()
		s.Set("since", time.Now())
	case "/login":
		s.Renew()
		s.Set("user", "ann")
	case "/logout":
		s.Destroy()
	default:
		n, err := h.counted(s, r)
		if err != nil {
			w.WriteHeader(middleware.Status(err))
			return
		}
		fmt.Fprintln(w, n)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// counted reads the number or adds 1 to it. Where the session is over, what can only be done to one
// is done in the ordinary way, for its answer.
func (h *historian) counted(s *session.Session, r *http.Request) (n int, err error) {
	ctx := r.Context()
	switch path := r.URL.Path; {
	case path == "/count":
	case s.IsNew() && path != "/count/again":
		return add(s), nil
	case path == "/incr/discard":
		s.Set("n", 1_000_000)
		s.Discard()
		return add(s), nil
	case path == "/incr/update":
		if err = s.Commit(ctx); err == nil {
			err = h.sessions.Update(ctx, s.ID(), func(s *session.Session) error { n = add(s); return nil })
		}
		return n, err
	case path == "/incr/reopen", path == "/count/again":
		if err = s.Commit(ctx); err == nil {
			err = s.Reopen(ctx)
		}
	}
	switch {
	case r.Method == http.MethodGet && errors.Is(err, store.ErrGone):
		return 0, nil // as for those that come later
	case err != nil:
		return 0, err
	}
	if n, _ = session.Get[int](s, "n"); r.Method == http.MethodPost {
		n = add(s)
	}
	return n, nil
}
