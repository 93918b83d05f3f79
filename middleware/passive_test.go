package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// nearEnd makes a session expire in a minute.
const nearEnd = time.Minute

// A passive request does not extend the idle timeout, whatever its mode, and in whichever order Passive and the mode
// are given. But it may save.
func TestAPassiveRequestDoesNotExtendTheSession(t *testing.T) {
	t.Parallel()
	lazy := func(*http.Request) middleware.Mode { return middleware.Lazy }
	for name, test := range map[string]struct {
		options middleware.Options
		wrap    func(*middleware.Sessions, http.Handler) http.Handler
	}{
		"around a ServeMux": {middleware.Options{}, (*middleware.Sessions).Handler},
		"with a GuestTTL":   {middleware.Options{GuestTTL: 10 * time.Minute}, (*middleware.Sessions).Handler},
		"Lazy around another router": {middleware.Options{Mode: lazy}, func(s *middleware.Sessions, mux http.Handler) http.Handler {
			return s.Handler(http.HandlerFunc(mux.ServeHTTP))
		}},
		"the routes alone": {middleware.Options{}, func(_ *middleware.Sessions, mux http.Handler) http.Handler { return mux }},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := newSessions(t, r, test.options)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				own, err := session.Start(r.Context())
				must(t, err)
				if r.URL.Query().Has("add") {
					add(own)
				}
				n, _ := session.Get[int](own, "n")
				fmt.Fprint(w, n)
			})
			mux := http.NewServeMux()
			mux.Handle("/active", s.Exclusive(h))
			mux.Handle("/passive", s.Passive(h))
			mux.Handle("/twice", s.Passive(s.Passive(h)))
			for mode, in := range map[string]func(http.Handler) http.Handler{
				"exclusive": s.Exclusive, "readonly": s.ReadOnly, "optimistic": s.Optimistic, "lazy": s.Lazy,
			} {
				mux.Handle("/inner/"+mode, s.Passive(in(h)))
				mux.Handle("/outer/"+mode, in(s.Passive(h)))
			}
			none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
			site := newSite(t, r.Pool(t, 1), none, test.wrap(s, mux))
			v := newVisitor(t)
			v.get(site.URL+"/active?add").want(t, 200, "1")
			record, n := r.Keys(t)[0], 1
			left := func(path, query string) time.Duration {
				r.Do(t, "PEXPIRE", record, nearEnd.Milliseconds())
				redistest.Elapse(time.Second)
				if query != "" {
					n++
				}
				v.get(site.URL+path+query).want(t, 200, fmt.Sprint(n))
				return expiryOf(t, r, record)
			}
			for _, path := range []string{
				"/passive", "/twice", "/inner/exclusive", "/outer/exclusive", "/inner/readonly", "/outer/readonly",
				"/inner/optimistic", "/outer/optimistic", "/inner/lazy", "/outer/lazy",
			} {
				queries := []string{"", "?add"}
				if path == "/inner/readonly" || path == "/outer/readonly" {
					queries = queries[:1]
				}
				for _, query := range queries {
					if got := left(path, query); got != nearEnd-time.Second {
						t.Errorf("%s%s: the session expires in %v, want %v", path, query, got, nearEnd-time.Second)
					}
				}
			}
			if got := left("/active", ""); got < 9*time.Minute {
				t.Errorf("after a request that is not passive the session expires in %v", got)
			}
		})
	}
}

// expiryOf returns when a record expires, from now.
func expiryOf(t *testing.T, r *redistest.Server, record string) time.Duration {
	t.Helper()
	return time.Duration(r.Do(t, "PTTL", record).(int64)) * time.Millisecond
}

// If another request has written, a passive request runs again, and is still passive.
func TestASecondRunStaysPassive(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSessions(t, r, middleware.Options{})
		mux := http.NewServeMux()
		mux.Handle("/add", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { add(session.FromContext(r.Context())) }))
		runs := 0
		var site *site
		var v *visitor
		mux.Handle("/poll", s.Optimistic(s.Passive(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			if runs++; runs == 1 {
				v.get(site.URL+"/add").want(t, 200, "")
				for _, key := range r.Keys(t) {
					r.Do(t, "PEXPIRE", key, nearEnd.Milliseconds())
				}
			}
			add(session.FromContext(req.Context()))
		}))))
		none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
		site = newSite(t, r.Pool(t, 1), none, s.Handler(mux))
		v = newVisitor(t)
		v.get(site.URL+"/add").want(t, 200, "")
		v.get(site.URL+"/poll").want(t, 200, "")
		if got := expiryOf(t, r, r.Keys(t)[0]); runs != 2 || got != nearEnd {
			t.Errorf("%d runs; the session expires in %v, want %v", runs, got, nearEnd)
		}
	})
}

// It is an error if a route turns out to be passive when its session is already open, as with a mode: the idle
// timeout was extended already.
func TestAPassiveRouteThatComesTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		log := &logtest.Buffer{}
		s := newSessions(t, r, middleware.Options{Logger: log.Logger()})
		for name, h := range map[string]http.Handler{
			"behind a router":   s.Handler(wrapped{s.Passive(nothing)}),
			"with a mode":       s.Handler(wrapped{s.Passive(s.Exclusive(nothing))}),
			"behind a handler":  s.ReadOnly(wrapped{s.Passive(s.ReadOnly(nothing))}),
			"in a passive one":  s.Passive(wrapped{s.Passive(nothing)}),
			"around everything": s.Handler(s.Passive(nothing)),
		} {
			want := 500
			if name == "in a passive one" || name == "around everything" {
				want = 200
			}
			if got := serveOnce(t, h).Code; got != want {
				t.Errorf("%s: %d, want %d", name, got, want)
			}
		}
		if lines := log.Lines("is passive, its session was opened by a request that is not"); len(lines) != 3 {
			t.Errorf("the log is\n%s", log)
		}
	})
}

// P16: An open stream does not count as use of its session. Touch does, in every mode, and also in a passive request
// and in Update. If the session has ended, Touch returns ErrEnded.
func TestTouchIsUseOfTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSessions(t, r, middleware.Options{TTL: 10 * time.Minute})
		var record string
		touches := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
			own := session.FromContext(req.Context())
			touch := func(when string, ctx context.Context, own *session.Session) {
				r.Do(t, "PEXPIRE", record, nearEnd.Milliseconds())
				must(t, own.Touch(ctx))
				if got := expiryOf(t, r, record); got != 10*time.Minute {
					t.Errorf("%s %s: the session expires in %v", req.URL, when, got)
				}
			}
			touch("when it is open", req.Context(), own)
			must(t, own.Commit(req.Context()))
			touch("when it is closed", req.Context(), own)
			must(t, s.Update(req.Context(), own.ID(), func(u *session.Session) error {
				touch("in Update", req.Context(), u)
				return nil
			}))
			if got := expiryOf(t, r, record); got != 10*time.Minute {
				t.Errorf("%s after Update: the session expires in %v", req.URL, got)
			}
			other := s.End(req.Context(), own.ID())
			if err := own.Touch(req.Context()); !errors.Is(err, session.ErrEnded) || !errors.Is(err, store.ErrGone) || other != nil {
				t.Errorf("%s: Touch of an ended session: %v", req.URL, err)
			}
			r.Do(t, "DEL", record)
			if err := own.Touch(req.Context()); !errors.Is(err, session.ErrEnded) || !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: Touch of an unknown session: %v", req.URL, err)
			}
		})
		mux := http.NewServeMux()
		handle(mux, "/add", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { add(s) })
		mux.Handle("/exclusive", touches)
		mux.Handle("/readonly", s.ReadOnly(touches))
		mux.Handle("/optimistic", s.Optimistic(touches))
		mux.Handle("/passive", s.Passive(touches))
		none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
		site := newSite(t, r.Pool(t, 1), none, s.Handler(mux))
		for _, path := range []string{"/exclusive", "/readonly", "/optimistic", "/passive"} {
			v := newVisitor(t)
			v.get(site.URL+"/add").want(t, 200, "")
			record = r.Keys(t)[0]
			v.get(site.URL+path).want(t, 200, "")
		}
	})
}

// Touch does nothing to a session that is not stored. It extends the session that the request has begun or renewed,
// and fails if the request has ended its session. It does not follow a session to an ID that another request has
// given it.
func TestTouchMeansTheRequestsOwnSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		handle(mux, "/life", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
			ctx := req.Context()
			must(t, own.Touch(ctx))
			add(own)
			must(t, own.Touch(ctx))
			for range 2 {
				must(t, own.Commit(ctx))
				r.Do(t, "PEXPIRE", recordOf(own.ID()), nearEnd.Milliseconds())
				must(t, own.Touch(ctx))
				if got := expiryOf(t, r, recordOf(own.ID())); got != 30*time.Minute {
					t.Errorf("the session expires in %v", got)
				}
				must(t, own.Reopen(ctx))
				own.Login("ann")
			}
			own.Destroy()
			must(t, own.Commit(ctx))
			if err := own.Touch(ctx); !errors.Is(err, session.ErrEnded) || !errors.Is(err, store.ErrGone) {
				t.Errorf("after Destroy: %v", err)
			}
		})
		var v *visitor
		handle(mux, "/moved", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
			must(t, own.Commit(req.Context()))
			v.get(s.URL+"/login/ann").want(t, 200, "")
			if err := own.Touch(req.Context()); !errors.Is(err, store.ErrGone) || errors.Is(err, session.ErrEnded) {
				t.Errorf("after a login by another request: %v", err)
			}
		})
		s = newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		newVisitor(t).get(s.URL+"/life").want(t, 200, "")
		v = s.visitor(t)
		v.get(s.URL+"/moved").want(t, 200, "")
	})
}

// A stream gets the same error from Touch, whether or not its context has ended before.
func TestTouchAfterTheContextHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := http.NewServeMux()
		handle(mux, "/stream", func(own *session.Session, _ http.ResponseWriter, req *http.Request) {
			add(own)
			must(t, own.Commit(req.Context()))
			must(t, s.sessions.End(context.Background(), own.ID()))
			<-req.Context().Done()
			if err := own.Touch(req.Context()); !errors.Is(err, session.ErrEnded) || !errors.Is(err, store.ErrGone) {
				t.Errorf("Touch: %v", err)
			}
		})
		s = newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		newVisitor(t).get(s.URL+"/stream").want(t, 200, "")
	})
}
