package middleware_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// The handler must not run again if its work may have left the process. The response is then a 503, and nothing of
// the request is saved or sent.
func TestAHandlerThatMayNotRunAgain(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w http.ResponseWriter, req *http.Request) error{
		"Commit": func(_ http.ResponseWriter, req *http.Request) error {
			return session.FromContext(req.Context()).Commit(req.Context())
		},
		"Flush": func(w http.ResponseWriter, _ *http.Request) error { return http.NewResponseController(w).Flush() },
		"Hijack": func(w http.ResponseWriter, _ *http.Request) error {
			_, _, err := http.NewResponseController(w).Hijack()
			return err
		},
		"a response larger than Options.Buffer": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := w.Write(make([]byte, 1000))
			return err
		},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			var failed error
			p := newPair(t, r, middleware.Options{Buffer: 100}, func(p *pair, _ int32, w http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				p.another(t, "/add")
				w.Header().Set("X-Handler", "yes")
				failed = begin(w, req)
			})
			a := p.v.get(p.here.URL + "/page")
			a.want(t, 503, "The session is not available just now. Nothing was saved. Please try again.")
			if !errors.Is(failed, store.ErrConflict) || a.Header.Get("Retry-After") == "" || a.Header.Get("X-Handler") != "" {
				t.Errorf("%v, %v", failed, a.Header)
			}
			if len(p.here.log.Lines("kind=conflict")) != 1 || len(p.here.log.Lines("cannot run again after "+name)) != 1 {
				t.Errorf("the log is\n%s", p.here.log)
			}
			p.v.get(p.here.URL+"/get").want(t, 200, "2")
			p.wantRuns(t, 1)
			p.wantFree(t)
		})
	}
}

// Mode Optimistic is for requests that may be repeated. For any other request no handler runs.
func TestOptimisticIsForSafeMethods(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		ran := 0
		s := newSite(t, r.Pool(t, 1), middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.Optimistic }},
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))
		for method, want := range map[string]int{"GET": 200, "HEAD": 200, "OPTIONS": 200, "TRACE": 200, "POST": 500, "PUT": 500, "DELETE": 500, "PATCH": 500, "get": 500} {
			before := ran
			a := newVisitor(t).send(t.Context(), method, s.URL, nil)
			if a.StatusCode != want || (ran > before) != (want == 200) {
				t.Errorf("%s: %d, and the handler ran %d times", method, a.StatusCode, ran-before)
			}
		}
		if lines := s.log.Lines("mode Optimistic is for GET, HEAD, OPTIONS and TRACE"); len(lines) != 5 {
			t.Errorf("the log is\n%s", s.log)
		}
	})
}

// A handler runs only once, with the lock, if the request has a body, which can be read only once, or if the record
// cannot be read, so that OnCorrupt may replace it.
func TestWhereAHandlerMustRunOnceItIsExclusive(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		o := middleware.Options{OnCorrupt: func(*http.Request, error) error { return nil }}
		p := newPair(t, r, o, func(p *pair, _ int32, w http.ResponseWriter, req *http.Request) {
			fmt.Fprint(w, p.held(t), add(session.FromContext(req.Context())))
		})
		p.v.get(p.here.URL+"/page").want(t, 200, "false 2")
		p.v.send(t.Context(), http.MethodGet, p.here.URL+"/page", strings.NewReader("body")).want(t, 200, "true 3")
		r.Do(t, "SET", p.record(t), "garbage", "PX", 60_000)
		p.v.get(p.here.URL+"/page").want(t, 200, "true 1")
		p.v.get(p.here.URL+"/get").want(t, 200, "1")
		p.wantRuns(t, 3)
	})
}

// P3: if it is unknown whether the first run was saved, there is no second run.
func TestNoSecondRunAfterASaveThatMayHaveBeenDone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		p := newPair(t, r, middleware.Options{}, nil)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{Mode: optimisticGets}, app())
		v := p.tab(t)
		v.get(s.URL+"/add").want(t, 200, "2") // Redis learns the script
		tries := 0
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			if cmd.Name != "EVALSHA" {
				return redistest.Pass
			}
			switch tries++; tries {
			case 1:
				return redistest.DropReply
			case 2:
				p.another(t, "/add")
			}
			return redistest.Pass
		})
		v.get(s.URL+"/add").want(t, 503, "The session is not available just now. Please try again.")
		proxy.Inject(nil)
		p.v.get(p.here.URL+"/get").want(t, 200, "4") // 3 was saved, and then another request wrote 4
	})
}

// A save is refused because another request holds the session, and the network makes a copy of the command. Redis
// executes the copy once the session is free. Then the request finds its own record, and does not run again.
func TestACopyOfARefusedSaveIsKnown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		p := newPair(t, r, middleware.Options{}, nil)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{Mode: optimisticGets}, app())
		v := p.tab(t)
		v.get(s.URL+"/add").want(t, 200, "2")
		lock := p.record(t) + ".lock"
		var save redistest.Command
		proxy.Inject(func(cmd redistest.Command) redistest.Fault {
			switch {
			case cmd.Name == "EVALSHA" && save.Name == "":
				save = cmd
				r.Do(t, "SET", lock, "another", "PX", 60_000)
			case cmd.Name == "SET" && cmd.Args[0] == lock && save.Name != "": // it takes the lock
				r.Do(t, "DEL", lock)
				args := make([]any, len(save.Args))
				for i, arg := range save.Args {
					args[i] = arg
				}
				r.Do(t, save.Name, args...)
			}
			return redistest.Pass
		})
		v.get(s.URL+"/add").want(t, 200, "3")
		proxy.Inject(nil)
		v.get(s.URL+"/get").want(t, 200, "3")
		p.wantFree(t)
	})
}

// A goroutine that the first run has left behind may commit during the second run: it gets none of the second run's events.
func TestALeftoverCommitLeavesTheSecondRunAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		log := &audit{}
		var s, elsewhere *site
		mux := users(func() *middleware.Sessions { return s.sessions })
		var guest *http.Cookie
		runs, begin := 0, make(chan struct{})
		var left sync.WaitGroup
		handle(mux, "/page", func(ss *session.Session, _ http.ResponseWriter, r *http.Request) {
			add(ss)
			if runs++; runs > 1 {
				close(begin)
				ss.Login("ann")
				return
			}
			ctx := r.Context()
			left.Go(func() {
				<-begin
				_ = ss.Commit(ctx)
			})
			with(t, guest).post(elsewhere.URL+"/add").want(t, 200, "2")
		})
		s = newSite(t, r.Pool(t, 4), middleware.Options{Mode: optimisticGets, Hooks: log.hooks()}, mux)
		elsewhere = newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		member := newVisitor(t)
		member.post(s.URL+"/login/bob").want(t, 200, "")
		old := member.cookies(s)
		member.post(s.URL+"/renew").want(t, 200, "") // a cookie that has moved makes the first run note that
		g := newVisitor(t)
		g.post(s.URL+"/add").want(t, 200, "1")
		guest = g.cookie(s)
		log.lines = nil
		with(t, append([]*http.Cookie{guest}, old...)...).navigate("GET", s.URL+"/page").want(t, 200, "*")
		left.Wait()
		if runs != 2 || len(log.lines) == 0 {
			t.Errorf("after %d runs, the hooks were told %q", runs, log.lines)
		}
	})
}
