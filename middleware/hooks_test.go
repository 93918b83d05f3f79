package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// An audit is a log that hooks write.
type audit struct {
	mu    sync.Mutex
	lines []string
}

func (a *audit) note(ctx context.Context, format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		format += " with a context that has ended"
	}
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

func (a *audit) hooks() middleware.Hooks {
	return middleware.Hooks{
		Begin: func(ctx context.Context, id string) { a.note(ctx, "begin %s", id) },
		Renew: func(ctx context.Context, old, id string) { a.note(ctx, "renew %s %s", old, id) },
		End:   func(ctx context.Context, id string) { a.note(ctx, "end %s", id) },
	}
}

// want checks what was noted since the last call.
func (a *audit) want(t *testing.T, lines ...string) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Equal(a.lines, lines) {
		t.Errorf("the audit log has %q, want %q", a.lines, lines)
	}
	a.lines = nil
}

func (a *audit) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = nil
}

// The beginning, each renewal and the end of a session are noted once, before the client has the response. Mere use
// is not noted.
func TestHooksSeeTheLifeOfASession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var log audit
		s := newSite(t, r.Pool(t, 4), middleware.Options{Hooks: log.hooks()}, app())
		v := newVisitor(t)
		v.get(s.URL+"/nothing").want(t, 200, "")
		log.want(t)
		v.post(s.URL+"/add").want(t, 200, "1")
		guest := v.get(s.URL + "/id").body
		log.want(t, "begin "+guest)
		before := v.cookies(s)
		v.post(s.URL+"/add").want(t, 200, "2")
		log.want(t)
		v.post(s.URL+"/login").want(t, 200, "")
		user := v.get(s.URL + "/id").body
		log.want(t, "renew "+guest+" "+user)
		with(t, before...).post(s.URL+"/add").want(t, 409, "*")
		log.want(t)
		v.post(s.URL+"/logout").want(t, 200, "")
		log.want(t, "end "+user)
		a := with(t, before...).post(s.URL + "/login") // with the cookie of an ended session
		begun := with(t, a.cookie(t)).get(s.URL + "/id").body
		log.want(t, "begin "+begun)

		for _, verdict := range []error{errors.New("no"), nil} {
			log.want(t)
			err := s.sessions.Update(t.Context(), begun, func(s *session.Session) error { s.Destroy(); return verdict })
			if !errors.Is(err, verdict) {
				t.Fatal(err)
			}
		}
		log.want(t, "end "+begun)
	})
}

// What one commit has done is not noted again by the next one, after a Reopen.
func TestASecondCommitNotesOnlyWhatItHasDone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var log audit
		s := siteWith(t, r, middleware.Options{Hooks: log.hooks()}, "/twice", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			add(s)
			must(t, s.Commit(req.Context()))
			guest := s.ID()
			log.want(t, "begin "+guest)
			must(t, s.Reopen(req.Context()))
			s.Renew()
			must(t, s.Commit(req.Context()))
			log.want(t, "renew "+guest+" "+s.ID())
			must(t, s.Reopen(req.Context()))
			add(s)
		})
		newVisitor(t).post(s.URL+"/twice").want(t, 200, "")
		log.want(t)
	})
}

// The end of a session is noted once, also if it is ended while a request holds it, and that request logs out.
func TestAnEndIsNotedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var log audit
		var s *site
		mux := app()
		handle(mux, "/end-and-log-out", func(own *session.Session, _ http.ResponseWriter, _ *http.Request) {
			must(t, s.sessions.End(t.Context(), own.ID())) // from elsewhere
			own.Destroy()
		})
		s = newSite(t, r.Pool(t, 4), middleware.Options{Hooks: log.hooks()}, mux)
		v, id := s.begins(t)
		log.forget()
		v.post(s.URL+"/end-and-log-out").want(t, 200, "")
		log.want(t, "end "+id)
	})
}

// A change that was not saved, or perhaps not saved, is not noted.
func TestNoHookForAFailedCommit(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*session.Session){
		"begin": func(s *session.Session) { s.Set("n", 1) },
		"renew": (*session.Session).Renew,
		"end":   (*session.Session).Destroy,
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			var log audit
			s := siteWith(t, r, middleware.Options{Hooks: log.hooks()}, "/change", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				change(s)
				r.Stop(t)
			})
			v := newVisitor(t)
			if name != "begin" {
				v.post(s.URL+"/add").want(t, 200, "1")
				log.want(t, "begin "+v.get(s.URL+"/id").body)
			}
			v.post(s.URL+"/change").want(t, 503, "*")
			log.want(t)
		})
	}
}

// A hook runs while the session is free: it may use the session, in every mode, and so may other
// requests.
func TestNothingIsHeldDuringAHook(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := app()
		handle(mux, "/early-login", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			s.Renew()
			must(t, s.Commit(req.Context()))
		})
		mux.HandleFunc("/lazy", func(_ http.ResponseWriter, req *http.Request) {
			own, err := session.Start(req.Context())
			must(t, err)
			add(own)
		})
		begun := 0
		hooks := middleware.Hooks{
			Begin: func(ctx context.Context, id string) {
				begun++
				own, err := session.Start(ctx)
				must(t, err)
				if n, _ := session.Get[int](own, "n"); n != 1 || own.ID() != id {
					t.Errorf("the session of %s is %s, with %d", id, own.ID(), n)
				}
			},
			Renew: func(ctx context.Context, _, id string) {
				own := session.FromContext(ctx)
				if n, _ := session.Get[int](own, "n"); n != 1 || own.ID() != id || own.Commit(ctx) != nil {
					t.Errorf("the session of %s is %s", id, own.ID())
				}
				// The client does not know the new ID yet; a job may.
				must(t, s.sessions.Update(ctx, id, func(s *session.Session) error { add(s); return nil }))
			},
		}
		s = newSite(t, r.Pool(t, 4), middleware.Options{Hooks: hooks, Mode: byPath(map[string]middleware.Mode{"/lazy": middleware.Lazy})}, mux)
		for _, path := range []string{"/login", "/early-login"} {
			v := s.visitor(t)
			v.post(s.URL+path).want(t, 200, "")
			v.get(s.URL+"/get").want(t, 200, "2")
		}
		newVisitor(t).post(s.URL+"/lazy").want(t, 200, "")
		if begun != 3 {
			t.Errorf("Begin was called %d times, want 3", begun)
		}
	})
}

// A panic in a hook goes on like a panic in the handler. Changes that were saved before stay saved.
func TestAHookThatPanics(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		hooks := middleware.Hooks{End: func(context.Context, string) { panic("no disk") }}
		s := around(t, r, middleware.Options{Hooks: hooks}, func(sessions func(http.Handler) http.Handler) http.Handler {
			return recoverer(sessions(app()))
		})
		v := s.visitor(t)
		kept := with(t, v.cookies(s)...)
		v.post(s.URL+"/logout").want(t, 500, "no disk")
		kept.get(s.URL+"/get").want(t, 200, "0")
	})
}

// A login that is one too many ends other sessions. If it cannot end them all, it fails, and the hook is called for those
// that have ended.
func TestTheSessionsThatAFailedLoginHasEndedAreAudited(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		log := &audit{}
		many := newUserSite(t, r, middleware.Options{})
		proxy := redistest.NewProxy(t, r)
		few := newSite(t, proxy.Pool(t, 8), middleware.Options{MaxSessions: 1, Hooks: log.hooks()}, users(nil))
		ids := map[string]bool{}
		for range 2 {
			ids[visitAs(t, many, "ann").get(many.URL+"/id").body] = true
			redistest.Elapse(time.Minute)
		}
		if len(ids) != 2 {
			t.Fatalf("ann has the sessions %v", ids)
		}
		ends := map[string]bool{}
		proxy.Inject(func(c redistest.Command) redistest.Fault {
			for id := range ids {
				if record, _ := keysOf(id); c.Name == "EVALSHA" && slices.Contains(c.Args, record) {
					ends[id] = true
				}
			}
			if len(ends) == 2 {
				return redistest.DropCommand
			}
			return redistest.Pass
		})
		v := newVisitor(t)
		v.get(few.URL+"/login/ann").want(t, 503, "*")
		proxy.Inject(nil)
		left, err := many.sessions.List(t.Context(), "ann")
		must(t, err)
		for _, session := range left {
			delete(ids, session.ID)
		}
		if len(ids) != 1 {
			t.Fatalf("%d sessions have ended", len(ids))
		}
		for id := range ids {
			log.want(t, "end "+id)
		}
	})
}
