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
	"github.com/a2139e8d/latchkey/store"
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

// Whatever begins, renews or ends a session is noted once, by the time the client has the answer;
// what only uses it is not.
func TestHooksSeeTheLifeOfASession(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
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
		again := with(t, before...)
		a := again.post(s.URL + "/login") // in the place of one that has ended
		begun := with(t, a.cookie(t)).get(s.URL + "/id").body
		log.want(t, "begin "+begun)
	})
}

// A session that Update ends is noted, too.
func TestHooksSeeAnUpdate(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	var log audit
	s := newSite(t, r.Pool(t, 4), middleware.Options{Hooks: log.hooks()}, app())
	v := newVisitor(t)
	v.post(s.URL+"/add").want(t, 200, "1")
	id := v.get(s.URL + "/id").body
	log.want(t, "begin "+id)
	failed := errors.New("no")
	for _, verdict := range []error{failed, nil} {
		log.want(t)
		err := s.sessions.Update(t.Context(), id, func(s *session.Session) error { s.Destroy(); return verdict })
		if !errors.Is(err, verdict) {
			t.Fatal(err)
		}
	}
	log.want(t, "end "+id)
}

// What was not saved, or maybe not, is not noted.
func TestNoHookForAFailedCommit(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*session.Session){
		"begin": func(s *session.Session) { s.Set("n", 1) },
		"renew": (*session.Session).Renew,
		"end":   (*session.Session).Destroy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Embedded(t)
			var log audit
			mux := app()
			mux.HandleFunc("/change", func(_ http.ResponseWriter, req *http.Request) {
				change(session.FromContext(req.Context()))
				r.Stop(t)
			})
			s := newSite(t, r.Pool(t, 4), middleware.Options{Hooks: log.hooks()}, mux)
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

// A hook runs while nothing is held: it may use the session, and so may others.
func TestNothingIsHeldDuringAHook(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		v := newVisitor(t)
		mux := app()
		mux.HandleFunc("/early-login", func(_ http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			s.Renew()
			if err := s.Commit(req.Context()); err != nil {
				t.Error(err)
			}
		})
		hooks := middleware.Hooks{
			Begin: func(ctx context.Context, id string) {
				if got := session.FromContext(ctx).ID(); got != id {
					t.Errorf("the session of %s is %s", id, got)
				}
			},
			Renew: func(ctx context.Context, _, id string) {
				own := session.FromContext(ctx)
				if n, _ := session.Get[int](own, "n"); n != 1 || own.ID() != id || own.Commit(ctx) != nil {
					t.Errorf("the session of %s is %s", id, own.ID())
				}
				// The client does not know the new id yet; a job may.
				err := s.sessions.Update(ctx, id, func(s *session.Session) error { add(s); return nil })
				if err != nil {
					t.Errorf("the session is held during a hook: %v", err)
				}
			},
		}
		s = newSite(t, r.Pool(t, 4), middleware.Options{Hooks: hooks, LockWait: time.Second}, mux)
		v.post(s.URL+"/add").want(t, 200, "1")
		for i, path := range []string{"/login", "/early-login"} {
			if i == 1 {
				v = newVisitor(t)
				v.post(s.URL+"/add").want(t, 200, "1")
			}
			v.post(s.URL+path).want(t, 200, "")
			v.get(s.URL+"/get").want(t, 200, "2")
		}
	})
}

// In mode Lazy, too, a hook finds the session where the handler has found it.
func TestAHookInModeLazy(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	found := make(chan string, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/begin", func(w http.ResponseWriter, req *http.Request) {
		s, err := session.Start(req.Context())
		if err != nil {
			t.Error(err)
			return
		}
		s.Set("n", 1)
		fmt.Fprint(w, s.ID())
	})
	s := newSite(t, r.Pool(t, 4), middleware.Options{
		Mode: func(*http.Request) middleware.Mode { return middleware.Lazy },
		Hooks: middleware.Hooks{Begin: func(ctx context.Context, id string) {
			own, err := session.Start(ctx)
			if err != nil {
				t.Error(err)
			} else if n, _ := session.Get[int](own, "n"); n == 1 && own.ID() == id {
				found <- id
			}
			close(found)
		}},
	}, mux)
	a := newVisitor(t).post(s.URL + "/begin")
	a.want(t, 200, "*")
	if id := <-found; id == "" || id != a.body {
		t.Errorf("the hook has found %q, the session is %q", id, a.body)
	}
}

// A hook that panics does so like the handler. What was saved before stays.
func TestAHookThatPanics(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		recovered := make(chan any, 1)
		o := middleware.Options{Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: "sid"}}
		o.Hooks.End = func(context.Context, string) { panic("no disk") }
		st := store.New(r.Pool(t, 4), store.Options{Timeout: time.Second})
		sessions, err := middleware.New(st, o)
		if err != nil {
			t.Fatal(err)
		}
		inside := sessions.Handler(app())
		around := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			defer func() {
				if p := recover(); p != nil {
					recovered <- p
					http.Error(w, "sorry", http.StatusInternalServerError)
				}
			}()
			inside.ServeHTTP(w, req)
		})
		none := func(*http.Request) middleware.Mode { return middleware.None }
		s := newSiteOn(t, st, middleware.Options{Mode: none}, around)
		v := newVisitor(t)
		v.post(s.URL+"/add").want(t, 200, "1")
		kept := with(t, v.cookies(s)...)
		v.post(s.URL+"/logout").want(t, 500, "sorry")
		if p := <-recovered; p != "no disk" {
			t.Errorf("recovered %v", p)
		}
		kept.get(s.URL+"/get").want(t, 200, "0")
	})
}

// Where a handler runs a second time, only what was saved is noted.
func TestHooksOfASecondRun(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		var log audit
		login := func(p *pair, run int32, _ http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Renew()
			if run == 1 {
				p.another(t, "/add")
			}
		}
		p := newPair(t, r, middleware.Options{Hooks: log.hooks()}, login)
		old := p.v.get(p.here.URL + "/id").body
		log.want(t, "begin "+old)
		p.v.get(p.here.URL+"/page").want(t, 200, "*")
		log.want(t, "renew "+old+" "+p.v.get(p.here.URL+"/id").body)
		p.wantRuns(t, 2)
	})
}
