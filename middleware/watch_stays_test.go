package middleware_test

import (
	"context"
	"errors"
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

// P16: A session stays the same session if it gets a new ID, or if a guest logs in. Requests that were opened before
// go on, and end with that session. A login as another user begins another session.
func TestARequestStaysWithItsSession(t *testing.T) {
	t.Parallel()
	for name, paths := range map[string][]string{
		"a guest's new ID":              {"/renew"},
		"two new IDs at once":           {"/renew", "/renew"},
		"a guest logs in":               {"/login/ann"},
		"a guest logs in, and again":    {"/renew", "/login/ann", "/login/ann", "/renew"},
		"a user's new ID":               {"/login/ann", "stay", "/renew"},
		"a user logs in again":          {"/login/ann", "stay", "/login/ann"},
		"another user":                  {"/login/ann", "stay", "/login/bob"},
		"another user, after a new ID":  {"/login/ann", "stay", "/renew", "/login/bob"},
		"another user, and ann again":   {"/login/ann", "stay", "/login/bob", "/login/ann"},
		"a guest becomes ann, then bob": {"/login/ann", "/login/bob"},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			l := newLive(t, r, middleware.Options{}, steady)
			if len(paths) < 2 || paths[1] != "stay" {
				l.stay("holding it")
			}
			for _, path := range paths {
				if path == "stay" {
					l.stay("holding it")
				} else {
					l.visitor.get(l.there.URL+path).want(t, 200, "")
				}
			}
			if strings.Contains(name, "another user") || strings.Contains(name, "then bob") {
				l.wantEnded(time.Now())
				return
			}
			l.wantOpen()
			redistest.Elapse(5 * time.Minute) // the tombstone of the old ID is gone
			l.wantOpen()
			must(t, l.there.sessions.End(t.Context(), l.id()))
			l.wantEnded(time.Now())
		})
	}
}

// P16: A request that ends its own session, or gives it a new ID, goes on. If others end the session later, the
// request ends.
func TestARequestThatEndsItsOwnSessionGoesOn(t *testing.T) {
	t.Parallel()
	type world struct {
		s    *session.Session
		r    *http.Request
		site *site
		lose func() // the lock of s
	}
	for name, test := range map[string]struct {
		do   func(w world) error
		ends bool // the session has ended
	}{
		"Destroy": {func(w world) error { w.s.Destroy(); return w.s.Commit(w.r.Context()) }, true},
		"End":     {func(w world) error { return w.site.sessions.End(w.r.Context(), w.s.ID()) }, true},
		"EndAll":  {func(w world) error { _, err := w.site.sessions.EndAll(w.r.Context(), "ann"); return err }, true},
		"EndAll after Commit": {func(w world) error {
			err := w.s.Commit(w.r.Context())
			_, ending := w.site.sessions.EndAll(w.r.Context(), "ann")
			return errors.Join(err, ending)
		}, true},
		"Destroy in Update": {func(w world) error {
			return errors.Join(w.s.Commit(w.r.Context()), w.site.sessions.Update(w.r.Context(), w.s.ID(), func(u *session.Session) error {
				u.Destroy()
				return nil
			}))
		}, true},
		"End, and then another": {func(w world) error {
			err := w.site.sessions.End(w.r.Context(), w.s.ID())
			_ = w.site.sessions.End(w.r.Context(), otherID)
			return err
		}, true},
		"EndAll twice": {func(w world) error {
			_, err := w.site.sessions.EndAll(w.r.Context(), "ann")
			_, again := w.site.sessions.EndAll(w.r.Context(), "ann")
			return errors.Join(err, again)
		}, true},
		"End, at once with others": {func(w world) error {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() { _ = w.site.sessions.End(w.r.Context(), otherID) })
			}
			err := w.site.sessions.End(w.r.Context(), w.s.ID())
			all.Wait()
			return err
		}, true},
		"Destroy, and EndAll": {func(w world) error {
			w.s.Destroy()
			err := w.s.Commit(w.r.Context())
			_, ending := w.site.sessions.EndAll(w.r.Context(), "ann")
			return errors.Join(err, ending)
		}, true},
		"End, and a Renew that fails": {func(w world) error {
			err := w.site.sessions.End(w.r.Context(), w.s.ID())
			w.s.Renew()
			_ = w.s.Commit(w.r.Context())
			return err
		}, true},
		"End of the ID before a Renew": {func(w world) error {
			before := w.s.ID()
			w.s.Renew()
			return errors.Join(w.s.Commit(w.r.Context()), w.site.sessions.End(w.r.Context(), before))
		}, true},
		"Destroy in an Update that fails": {func(w world) error {
			err := w.s.Commit(w.r.Context())
			if w.site.sessions.Update(w.r.Context(), w.s.ID(), func(u *session.Session) error {
				u.Destroy()
				w.lose()
				return nil
			}) == nil {
				return errors.New("the Update did not fail")
			}
			return err
		}, false},
		"End that fails": {func(w world) error {
			ctx, cancel := context.WithCancel(w.r.Context())
			cancel()
			if w.site.sessions.End(ctx, w.s.ID()) == nil {
				return errors.New("End did not fail")
			}
			return nil
		}, false},
		"EndAll but this": {func(w world) error { _, err := w.site.sessions.EndAll(w.r.Context(), "ann", w.s.ID()); return err }, false},
		"End of another":  {func(w world) error { w.site.sessions.End(w.r.Context(), otherID); return nil }, false},
		"Renew":           {func(w world) error { w.s.Renew(); return w.s.Commit(w.r.Context()) }, false},
		"Login":           {func(w world) error { w.s.Login("bob"); return w.s.Commit(w.r.Context()) }, false},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			var s *site
			mux := users(func() *middleware.Sessions { return s.sessions })
			stays := newStays()
			ids := make(chan string, 1)
			handle(mux, "/stay", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
				redistest.Elapse(1500 * time.Millisecond) // it is watched
				must(t, test.do(world{own, req, s, func() { loseLock(t, r, req) }}))
				ids <- own.ID()
				stays.wait(name, req)
			})
			s = newSiteOn(t, store.New(r.Pool(t, 8), store.Options{Lease: 3 * time.Second}), middleware.Options{}, mux)
			v := s.visitor(t)
			v.get(s.URL+"/login/ann").want(t, 200, "")
			done := v.start(s.URL + "/stay")
			<-stays.begun
			redistest.Elapse(10 * time.Second)
			if len(stays.over) > 0 {
				t.Errorf("the request's own context has ended because of %v", (<-stays.over).cause)
			} else if id := <-ids; test.ends {
				stays.free <- struct{}{}
				<-stays.over
			} else {
				must(t, s.sessions.End(t.Context(), id))
				at := time.Now()
				if over := <-stays.over; over.cause != session.ErrEnded || over.ended.Sub(at) > promptly {
					t.Errorf("the context ended %v later, because of %v", over.ended.Sub(at), over.cause)
				}
			}
			<-done
		})
	}
}

// P16: A request that ends other sessions goes on, and stays with its own, even if that moved long before.
func TestARequestWhoseSessionHasMovedEndsOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		stays := newStays()
		handle(mux, "/stay", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
			must(t, http.NewResponseController(w).Flush())
			stays.begun <- ""
			<-stays.free
			if err := s.sessions.End(req.Context(), otherID); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("End: %v", err)
			}
			stays.wait("a stream", req)
		})
		s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
		v := s.visitor(t)
		stream := v.start(s.URL + "/stay")
		<-stays.begun
		v.get(s.URL+"/login/ann").want(t, 200, "")
		redistest.Elapse(70 * time.Second) // nobody knows any more that the ID has moved
		stays.free <- struct{}{}
		<-stays.begun
		redistest.Elapse(5 * time.Second)
		if len(stays.over) > 0 {
			t.Fatalf("the context has ended because of %v", (<-stays.over).cause)
		}
		must(t, s.sessions.End(t.Context(), v.get(s.URL+"/id").body))
		at := time.Now()
		if over := <-stays.over; over.cause != session.ErrEnded || over.ended.Sub(at) > promptly {
			t.Errorf("the context ended %v later, because of %v", over.ended.Sub(at), over.cause)
		}
		<-stream
	})
}

// P16: A request that ends its own session goes on, even if another request has just given the session a new ID.
func TestARequestWhoseSessionHasJustMovedEndsIt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, s *middleware.Sessions, id string) error{
		"End": func(ctx context.Context, s *middleware.Sessions, id string) error { return s.End(ctx, id) },
		"EndAll": func(ctx context.Context, s *middleware.Sessions, _ string) error {
			_, err := s.EndAll(ctx, "ann")
			return err
		},
		"Update": func(ctx context.Context, s *middleware.Sessions, id string) error {
			return s.Update(ctx, id, func(u *session.Session) error { u.Destroy(); return nil })
		},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			var s *site
			mux := users(func() *middleware.Sessions { return s.sessions })
			stays, moved := newStays(), make(chan string)
			handle(mux, "/stay", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
				must(t, http.NewResponseController(w).Flush())
				stays.begun <- ""
				must(t, end(req.Context(), s.sessions, <-moved))
				stays.wait("a stream", req)
			})
			s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
			v := s.visitor(t)
			stream := v.start(s.URL + "/stay")
			<-stays.begun
			redistest.Elapse(3 * time.Second)
			v.get(s.URL+"/login/ann").want(t, 200, "")
			moved <- v.get(s.URL + "/id").body
			<-stays.begun
			redistest.Elapse(5 * time.Second)
			if len(stays.over) > 0 {
				t.Fatalf("the context has ended because of %v", (<-stays.over).cause)
			}
			stays.free <- struct{}{}
			<-stays.over
			<-stream
		})
	}
}

// P16: A session that has got a new ID has not ended, even when Redis has forgotten the old ID. A stream learns from
// Touch and Reopen that the session goes on without it, and can make its client connect again.
func TestAStreamLearnsThatItsSessionHasMoved(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{time.Second, 70 * time.Second} {
		inFakeTime(t, after.String(), func(t *testing.T, r *redistest.Server) {
			var s *site
			mux := users(func() *middleware.Sessions { return s.sessions })
			stays := newStays()
			handle(mux, "/stay", func(own *session.Session, w http.ResponseWriter, req *http.Request) {
				must(t, http.NewResponseController(w).Flush())
				stays.begun <- ""
				<-stays.free
				for name, err := range map[string]error{"Touch": own.Touch(req.Context()), "Reopen": own.Reopen(req.Context())} {
					moved := errors.Is(err, store.ErrMoved) && errors.Is(err, store.ErrGone)
					if !moved || errors.Is(err, session.ErrEnded) || errors.Is(err, store.ErrNotFound) {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
			s = newSite(t, r.Pool(t, 8), middleware.Options{}, mux)
			v := s.visitor(t)
			stream := v.start(s.URL + "/stay")
			<-stays.begun
			v.get(s.URL+"/login/ann").want(t, 200, "")
			redistest.Elapse(after)
			stays.free <- struct{}{}
			<-stream
		})
	}
}

// otherID is the ID of a session that does not exist.
const otherID = "AAAAAAAAAAAAAAAAAAAAAA"
