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

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

func adding(s *session.Session) error { add(s); return nil }

// P1: jobs and requests of one session, in two processes, run one after another. Nothing is lost.
func TestUpdatesAndRequestsLoseNothing(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		sites := []*site{newSite(t, r.Pool(t, 8), middleware.Options{}, app()), newSite(t, r.Pool(t, 8), middleware.Options{}, app())}
		v, id := sites[0].begins(t)
		var crowd sync.WaitGroup
		for i := range 30 {
			crowd.Go(func() { must(t, sites[i%2].sessions.Update(t.Context(), id, adding)) })
			crowd.Go(func() { v.get(sites[i/2%2].URL+"/add").want(t, 200, "*") })
		}
		crowd.Wait()
		v.get(sites[1].URL+"/get").want(t, 200, "61")
	})
}

// Update saves if f returns nil. If f returns an error or panics, it saves nothing.
func TestUpdateSavesUnlessItsFunctionFails(t *testing.T) {
	t.Parallel()
	failed := errors.New("no stock")
	for name, test := range map[string]struct {
		f    func(*session.Session) error
		want error  // of Update; nil with panics
		n    string // what is stored
	}{
		"nil":               {adding, nil, "2"},
		"a read":            {func(s *session.Session) error { s.Len(); return nil }, nil, "1"},
		"an error":          {func(s *session.Session) error { add(s); return failed }, failed, "1"},
		"a failed Set":      {func(s *session.Session) error { add(s); s.Set("x", strings.Repeat("x", 2000)); return nil }, store.ErrTooLarge, "1"},
		"Discard":           {func(s *session.Session) error { add(s); s.Discard(); return nil }, nil, "1"},
		"Discard, then Set": {func(s *session.Session) error { s.Renew(); s.Discard(); add(s); return nil }, nil, "2"},
		"Destroy":           {func(s *session.Session) error { s.Renew(); s.Destroy(); s.Set("n", 7); return nil }, nil, "0"},
		"a panic":           {func(s *session.Session) error { add(s); panic("oh") }, nil, "1"},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := newSite(t, r.Pool(t, 4), middleware.Options{MaxBytes: 1000}, app())
			v, id := s.begins(t)
			var kept *session.Session
			func() {
				defer func() {
					if p := recover(); (p != nil) != (name == "a panic") {
						t.Errorf("panicked: %v", p)
					}
				}()
				err := s.sessions.Update(t.Context(), id, func(own *session.Session) error {
					if kept = own; own.ID() != id || own.IsNew() {
						t.Errorf("the session is %q, IsNew %v", own.ID(), own.IsNew())
					}
					return test.f(own)
				})
				if !errors.Is(err, test.want) {
					t.Errorf("Update = %v, want %v", err, test.want)
				}
			}()
			if _, lock := keysOf(id); r.Exists(t, lock) {
				t.Error("the lock is not free")
			}
			v.get(s.URL+"/get").want(t, 200, test.n)
			if lines := s.log.Lines("kind=dropped"); (len(lines) == 1) != (name == "Destroy") {
				t.Errorf("log: %q", lines)
			}
			// What f has kept of the session cannot be changed any more, and the log says so.
			kept.Set("n", 9)
			if lines := s.log.Lines("kind=late", "session="+id, "key=n"); name == "nil" && len(lines) != 1 {
				t.Errorf("log: %s", s.log)
			}
		})
	}
}

// If f does what Update cannot do, Update returns a clear error, and saves nothing.
func TestUpdateRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		st := store.New(r.Pool(t, 4), store.Options{})
		s := newSiteOn(t, st, middleware.Options{LockWait: time.Second}, app())
		_, other := s.begins(t)
		h, _, err := records.Of(st).Take(t.Context(), other, records.Terms{})
		must(t, err)
		left, leaving := s.begins(t)
		left.get(s.URL+"/logout").want(t, 200, "")
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		for name, test := range map[string]struct {
			ctx  context.Context
			f    func(*session.Session) error
			id   string // "": of a new session
			want string
			is   error
		}{
			"Renew":            {t.Context(), func(s *session.Session) error { add(s); s.Renew(); return nil }, "", "cannot give the session a new ID", nil},
			"Remember":         {t.Context(), func(s *session.Session) error { add(s); s.Remember(time.Hour); return nil }, "", "nor an end", nil},
			"Commit":           {t.Context(), func(s *session.Session) error { add(s); return s.Commit(t.Context()) }, "", "saved when the function returns", nil},
			"Reopen":           {t.Context(), func(s *session.Session) error { add(s); return s.Reopen(t.Context()) }, "", "saved when the function returns", nil},
			"nested":           {t.Context(), nil, "", "", store.ErrTimeout},
			"a busy session":   {t.Context(), adding, other, "", store.ErrTimeout},
			"an ended ctx":     {canceled, adding, other, "", context.Canceled},
			"an unknown ID":    {t.Context(), adding, "AAAAAAAAAAAAAAAAAAAAAA", "", store.ErrNotFound},
			"an ended session": {t.Context(), adding, leaving, "", store.ErrGone},
		} {
			v, id := s.begins(t)
			f := test.f
			if f == nil {
				f = func(own *session.Session) error { add(own); return s.sessions.Update(t.Context(), id, adding) }
			}
			if test.id == "" {
				test.id = id
			}
			err := s.sessions.Update(test.ctx, test.id, f)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%s: Update = %v, want %q, %v", name, err, test.want, test.is)
			}
			v.get(s.URL+"/add").want(t, 200, "2")
		}
		h.Release(t.Context())
		if _, err := s.sessions.Peek(t.Context(), leaving); !errors.Is(err, store.ErrGone) {
			t.Errorf("Peek of an ended session = %v", err)
		}
	})
}

// An Update in a handler that holds the session says at once that it would wait for itself, and the
// handler goes on. If the handler has committed the session, it is an Update like any other.
func TestUpdateInAHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		st := store.New(r.Pool(t, 4), store.Options{})
		mux := app()
		var s, other *site
		refused := func(s *site, ctx context.Context, id string) {
			t.Helper()
			if err := s.sessions.Update(ctx, id, adding); err == nil || !strings.Contains(err.Error(), "would wait for itself") {
				t.Errorf("Update = %v", err)
			}
		}
		handle(mux, "/update", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
			add(own)
			refused(s, req.Context(), own.ID())
			refused(other, req.Context(), own.ID())
			must(t, own.Commit(req.Context()))
			must(t, s.sessions.Update(req.Context(), own.ID(), adding))
			must(t, own.Reopen(req.Context()))
			_, job := s.begins(t)
			must(t, s.sessions.Update(req.Context(), job, func(*session.Session) error {
				refused(s, req.Context(), own.ID())
				return nil
			}))
			fmt.Fprint(w, add(own))
		})
		other = newSiteOn(t, st, middleware.Options{LockWait: time.Minute}, mux)
		s = newSiteOn(t, st, middleware.Options{LockWait: time.Minute}, mux)
		v, _ := s.begins(t)
		v.get(s.URL+"/update").want(t, 200, "4")
		v.get(s.URL+"/get").want(t, 200, "4")
	})
}

// P12: neither Update nor Peek extends the idle timeout. P10: Update costs what a request does, two
// round trips, and Peek one.
func TestNeitherUpdateNorPeekProlongsTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, app())
		v, id := s.begins(t)
		must(t, s.sessions.Update(t.Context(), id, adding)) // so that the scripts are known
		v.get(s.URL+"/add").want(t, 200, "3")
		began := time.Now()
		ends := began.Add(records.DefaultTTL)
		for name, test := range map[string]struct {
			use   func() error
			trips int
		}{
			"Update":                     {func() error { return s.sessions.Update(t.Context(), id, adding) }, 2},
			"an Update without a change": {func() error { return s.sessions.Update(t.Context(), id, func(*session.Session) error { return nil }) }, 2},
			"an Update that fails": {func() error {
				_ = s.sessions.Update(t.Context(), id, func(*session.Session) error { return errors.New("no") })
				return nil
			}, 2},
			"Peek": {func() error {
				info, err := s.sessions.Peek(t.Context(), id)
				if info.ID != id || info.Expires.Sub(ends).Abs() > time.Second || began.Sub(info.Created).Abs() > time.Second {
					t.Errorf("Peek = %+v", info)
				}
				return err
			}, 1},
		} {
			redistest.Elapse(5 * time.Minute)
			proxy.Forget()
			must(t, test.use())
			if trips := proxy.RoundTrips(); trips != test.trips {
				t.Errorf("%s took %d round trips, want %d: %q", name, trips, test.trips, proxy.Commands())
			}
		}
		redistest.Elapse(time.Until(ends) - time.Second)
		if !r.Exists(t, recordOf(id)) {
			t.Error("the session is over too early")
		}
		redistest.Elapse(2 * time.Second)
		if r.Exists(t, recordOf(id)) {
			t.Error("the session goes on")
		}
	})
}

// A noted context has the deadline of another one, but never ends: some programs have such a type of their own.
type noted struct{ context.Context }

func (noted) Done() <-chan struct{} { return nil }
func (noted) Err() error            { return nil }

// P7: a context that has a deadline and never ends fails its own Update, and keeps no other request from the session.
func TestUpdateWithAContextThatNeverEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		id := v.get(s.URL + "/id").body
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.Sleep(2 * time.Second)
		err := s.sessions.Update(noted{short}, id, func(s *session.Session) error { s.Set("n", 5); return nil })
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		v.get(s.URL+"/get").want(t, 200, "1")
	})
}
