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
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// What the session has become meanwhile is what the second run finds, as any request would that
// comes then.
func TestTheSecondRunFindsWhatTheSessionHasBecome(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for name, c := range map[string]struct {
			meanwhile func(p *pair)
			status    int
			body      string
			sets      bool
		}{
			"logged out":                 {func(p *pair) { p.another(t, "/logout") }, 409, "*", false},
			"logged in":                  {func(p *pair) { p.another(t, "/login") }, 409, "*", false},
			"run out":                    {func(p *pair) { r.Do(t, "DEL", recordOfSite(t, p)) }, 200, "1", true},
			"damaged, and not replaced":  {func(p *pair) { r.Do(t, "SET", recordOfSite(t, p), "garbage", "PX", 60_000) }, 500, "*", false},
			"the same, changed and held": {func(p *pair) { p.another(t, "/add"); p.another(t, "/nothing") }, 200, "3", false},
		} {
			r.Do(t, "FLUSHALL")
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
				if run == 1 {
					c.meanwhile(p)
				}
				fmt.Fprint(w, add(session.FromContext(req.Context())))
			})
			a := p.v.get(p.here.URL + "/page")
			if a.StatusCode != c.status || c.body != "*" && a.body != c.body || a.sets() != c.sets {
				t.Errorf("%s: %d %q, sets a cookie: %v", name, a.StatusCode, a.body, a.sets())
			}
			p.wantFree(t)
		}
	})
}

// recordOfSite returns the key of the one session that there is.
func recordOfSite(t *testing.T, p *pair) string {
	t.Helper()
	for _, key := range p.redis.Keys(t) {
		if strings.HasSuffix(key, "}") {
			return key
		}
	}
	t.Fatal("there is no session")
	return ""
}

// A record that cannot be read needs the lock, since OnCorrupt may replace it: the handler runs
// once, exclusively.
func TestAnOptimisticRequestReplacesADamagedRecordUnderTheLock(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	held := false
	o := middleware.Options{OnCorrupt: func(*http.Request, error) error { return nil }}
	p := newPair(t, r, o, func(p *pair, _ int32, w http.ResponseWriter, req *http.Request) {
		_, held = r.Get(t, recordOfSite(t, p)+".lock")
		fmt.Fprint(w, add(session.FromContext(req.Context())))
	})
	r.Do(t, "SET", recordOfSite(t, p), "garbage", "PX", 60_000)
	p.v.get(p.here.URL+"/page").want(t, 200, "1")
	if !held {
		t.Error("the session was not locked")
	}
	p.v.get(p.here.URL+"/get").want(t, 200, "1")
	p.wantRuns(t, 1)
}

// A login, a logout and a first write in an optimistic handler are done, and dead ids stay dead.
func TestOptimisticRequestsBeginMoveAndEndSessions(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			if run == 1 {
				p.another(t, "/add")
			}
			fmt.Fprint(w, add(s))
			s.Renew()
		})
		old := p.tab(t)
		p.v.get(p.here.URL+"/page").want(t, 200, "3")
		p.wantRuns(t, 2)
		old.get(p.here.URL+"/get").want(t, 200, "0")
		if a := old.get(p.here.URL + "/add"); a.StatusCode != http.StatusConflict || a.sets() {
			t.Errorf("a write with the old cookie: %d, %v", a.StatusCode, a.Header)
		}
		p.v.get(p.here.URL+"/login").want(t, 200, "")
		p.v.get(p.here.URL+"/get").want(t, 200, "3")
		last := p.tab(t)
		p.v.get(p.here.URL+"/logout").want(t, 200, "")
		last.get(p.here.URL+"/get").want(t, 200, "0")
		newVisitor(t).get(p.here.URL+"/add").want(t, 200, "1")
		p.wantFree(t)
	})
}

// The second run has the request as it came, whatever the first one has done to that, and what the
// first one has left running cannot disturb it.
func TestTheSecondRunBeginsAnew(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		var first struct {
			ctx context.Context
			s   *session.Session
			w   http.ResponseWriter
		}
		p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			_ = req.ParseForm()
			fmt.Fprint(w, req.Header.Get("X-Once"), req.Header["X-Never"], req.URL.Path, req.Form["q"], add(s))
			if run == 1 {
				req.Header.Del("X-Once")
				req.Header.Add("X-Never", "1")
				req.URL.Path = "/elsewhere"
				req.Form.Set("q", "2")
				p.another(t, "/add")
				first.ctx, first.s, first.w = req.Context(), s, w
				return
			}
			if context.Cause(first.ctx) == nil {
				t.Error("the first run's context has not ended")
			}
			first.s.Set("stray", true)
			first.s.Destroy()
			if err := first.s.Commit(first.ctx); err == nil {
				t.Error("the first run's session was committed")
			}
			first.w.Header().Set("X-Stray", "yes")
			first.w.WriteHeader(http.StatusTeapot)
			if _, err := first.w.Write([]byte("stray")); err == nil {
				t.Error("the first run could still write")
			}
			if err := http.NewResponseController(first.w).Flush(); err == nil {
				t.Error("the first run could still flush")
			}
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.here.URL+"/page?q=1", nil)
		must(t, err)
		req.Header.Set("X-Once", "once")
		a := p.v.do(req)
		a.want(t, 200, "once[]/page[1] 3")
		if a.Header.Get("X-Stray") != "" {
			t.Errorf("the header is %v", a.Header)
		}
		p.v.get(p.here.URL+"/len").want(t, 200, "1")
		if lines := p.here.log.Lines("session changed after it was saved"); len(lines) > 0 {
			t.Errorf("the first run's changes count: %q", lines)
		}
		p.wantRuns(t, 2)
	})
}

// P5: the wait for the second run has the bounds of any other.
func TestTheWaitForTheSecondRunIsBounded(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for _, what := range []string{"LockWait", "the request's deadline", "the client"} {
			gone := make(chan struct{})
			waits := make(chan struct{})
			o := middleware.Options{LockWait: time.Minute}
			if what == "LockWait" {
				o.LockWait = 30 * time.Millisecond
			}
			p := newPair(t, r, o, func(p *pair, _ int32, _ http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				r.Do(t, "SET", recordOfSite(t, p)+".lock", "another", "PX", 60_000)
				if what == "the client" {
					close(waits)
					<-req.Context().Done()
				}
				close(gone)
			})
			ctx, cancel := context.WithCancel(t.Context())
			if what == "the request's deadline" {
				p.here.Config.Handler = http.TimeoutHandler(p.here.Config.Handler, 100*time.Millisecond, "too late")
			}
			if what == "the client" {
				go func() { <-waits; cancel() }()
			}
			a := p.v.send(ctx, http.MethodGet, p.here.URL+"/page", nil)
			if a.StatusCode == http.StatusOK {
				t.Errorf("%s: it was answered", what)
			}
			cancel()
			<-gone
			eventually(t, "the request is over", func() bool { return len(p.here.log.Lines("session failed")) == 1 })
			p.wantRuns(t, 1)
			r.Do(t, "DEL", recordOfSite(t, p)+".lock")
			p.v.get(p.here.URL+"/get").want(t, 200, "1")
			r.Do(t, "FLUSHALL")
		}
	})
}

// P2: a client that goes away undoes nothing of what its request has done, if the session is free, or is
// within a second.
func TestAClientThatGoesAwayUndoesNothing(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(s *session.Session){
		"Destroy":  (*session.Session).Destroy,
		"Renew":    (*session.Session).Renew,
		"Remember": func(s *session.Session) { s.Remember(month) },
		"Set":      func(s *session.Session) { s.Set("set", 1) },
	} {
		for name, c := range map[string]struct{ busy, locker bool }{
			"free": {}, "busy": {busy: true}, "free, with a Locker": {locker: true},
		} {
			t.Run(what+", "+name, func(t *testing.T) {
				t.Parallel()
				redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
					var lock locker.Locker
					if c.locker {
						lock = locker.NewSpin(r.Pool(t, 4), locker.Options{Timeout: 20 * time.Second})
					}
					mux, ran, key := app(), make(chan struct{}), ""
					mux.HandleFunc("/page", func(_ http.ResponseWriter, req *http.Request) {
						do(session.FromContext(req.Context()))
						if c.busy {
							r.Do(t, "SET", key+".lock", "another", "PX", 60_000)
						}
						close(ran)
						<-req.Context().Done()
						if c.busy {
							time.AfterFunc(50*time.Millisecond, func() { r.Do(t, "DEL", key+".lock") })
						}
					})
					st := store.New(r.Pool(t, 4), store.Options{Locker: lock, Timeout: 20 * time.Second})
					s := newSiteOn(t, st, middleware.Options{Mode: optimisticGets, LockWait: time.Minute}, mux)
					v := newVisitor(t)
					v.post(s.URL+"/add").want(t, 200, "1")
					key = recordOf(v.get(s.URL + "/id").body)
					before, _ := r.Get(t, key)
					ctx, cancel := context.WithCancel(t.Context())
					go func() { <-ran; cancel() }()
					if a := v.send(ctx, http.MethodGet, s.URL+"/page", nil); a.err == nil {
						t.Errorf("it was answered: %d", a.StatusCode)
					}
					eventually(t, "it is done", func() bool {
						after, _ := r.Get(t, key)
						return after != before && !r.Exists(t, key+".lock")
					})
					if failed := s.log.Lines("session failed"); len(failed) > 0 {
						t.Errorf("%v", failed)
					}
				})
			})
		}
	}
}

// P5: a request whose session is over when it is to be saved has waited for it, and does not do so
// again for its second run.
func TestTheSecondRunDoesNotWaitForWhatIsOver(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		mux := app()
		elsewhere := newSite(t, r.Pool(t, 2), middleware.Options{}, mux)
		v := newVisitor(t)
		v.post(elsewhere.URL+"/add").want(t, 200, "1")
		mux.HandleFunc("GET /page", func(_ http.ResponseWriter, req *http.Request) {
			add(session.FromContext(req.Context()))
			with(t, v.cookies(elsewhere)...).post(elsewhere.URL + "/logout")
		})
		here := newSite(t, proxy.Pool(t, 2), middleware.Options{Mode: optimisticGets}, mux)
		with(t, v.cookies(elsewhere)...).get(here.URL+"/page").want(t, 409, "*")
		took := 0
		for _, c := range proxy.Commands() {
			if c.Name == "SET" { // which begins each wait
				took++
			}
		}
		if took != 1 {
			t.Errorf("it came for the lock %d times, want once", took)
		}
	})
}

// P7: the second run is an exclusive one: it learns at once that it has lost its lock, and cannot save.
func TestTheSecondRunMayLoseItsLock(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, _ http.ResponseWriter, req *http.Request) {
			add(session.FromContext(req.Context()))
			if run == 1 {
				p.another(t, "/add")
				return
			}
			r.Do(t, "DEL", recordOfSite(t, p)+".lock")
			select {
			case <-req.Context().Done():
			case <-time.After(20 * time.Second):
			}
			if cause := context.Cause(req.Context()); !errors.Is(cause, store.ErrLost) {
				t.Errorf("the context ended with %v", cause)
			}
		})
		p.v.get(p.here.URL+"/page").want(t, 503, "*")
		p.v.get(p.here.URL+"/get").want(t, 200, "2")
		p.wantRuns(t, 2)
	})
}
