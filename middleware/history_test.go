package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
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
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		ctx, enough := context.WithCancel(t.Context())
		defer enough()
		var requests atomic.Int32
		var sites history.Sites
		for range 2 {
			h := &historian{came: func() {
				if requests.Add(1) == 500 {
					enough()
				}
			}}
			s := newSite(t, r.Pool(t, 8), middleware.Options{Mode: readsOnly}, h)
			h.sessions = s.sessions
			sites.Add(s.URL)
		}
		v := &history.Visitor{HTTP: newVisitor(t).Client, Site: sites.Any, Logins: true,
			Reads: []string{"/count", "/count/again"}, Writes: []string{"/incr", "/incr/reopen", "/incr/discard", "/incr/update"}}
		v.HTTP.Jar = nil // it has cookies of its own
		seed := rand.Uint64()
		v.Run(ctx, 6, seed)
		if err := v.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if sum := v.Summary(); sum.Writes == 0 || sum.Silent > 0 {
			t.Errorf("%+v", sum)
		}
	})
}

func readsOnly(r *http.Request) middleware.Mode {
	if r.Method == http.MethodGet {
		return middleware.ReadOnly
	}
	return middleware.Exclusive
}

// A historian is what the visitor asks.
type historian struct {
	sessions *middleware.Sessions
	came     func() // is called for each request
}

func (h *historian) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.came()
	<-time.After(rand.N(2 * time.Millisecond)) // it works
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
