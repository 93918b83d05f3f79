package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// optimisticGets is an Options.Mode, the one that the guide recommends.
func optimisticGets(r *http.Request) middleware.Mode {
	if r.Method == http.MethodGet {
		return middleware.Optimistic
	}
	return middleware.Exclusive
}

// A pair is two processes with the routes of app, in which GETs are optimistic and POSTs are
// exclusive, and a visitor of the first one whose session has n = 1. The first one has a page, too.
type pair struct {
	here, elsewhere *site
	v               *visitor
	redis           *redistest.Server
	runs            atomic.Int32 // of the page
}

// newPair returns a pair. page knows which run of the page's handler it is, counted from 1.
func newPair(t *testing.T, r *redistest.Server, o middleware.Options, page func(p *pair, run int32, w http.ResponseWriter, req *http.Request)) *pair {
	t.Helper()
	p := &pair{redis: r}
	mux := app()
	mux.HandleFunc("/page", func(w http.ResponseWriter, req *http.Request) { page(p, p.runs.Add(1), w, req) })
	o.Mode = optimisticGets
	p.here = newSite(t, r.Pool(t, 4), o, mux)
	p.elsewhere = newSite(t, r.Pool(t, 4), middleware.Options{}, app())
	p.v = newVisitor(t)
	p.v.post(p.here.URL+"/add").want(t, 200, "1")
	return p
}

// tab returns a visitor with the cookie of now, which goes elsewhere.
func (p *pair) tab(t *testing.T) *visitor { return with(t, p.v.cookies(p.here)...) }

// another is what another request does meanwhile, in the other process.
func (p *pair) another(t *testing.T, path string) {
	t.Helper()
	if a := p.tab(t).post(p.elsewhere.URL + path); a.err != nil || a.StatusCode != http.StatusOK {
		t.Errorf("another request: %d, %v", a.StatusCode, a.err)
	}
}

// record is the key of the one session that there is.
func (p *pair) record(t *testing.T) string {
	t.Helper()
	for _, key := range p.redis.Keys(t) {
		if strings.HasSuffix(key, "}") {
			return key
		}
	}
	t.Fatal("there is no session")
	return ""
}

// held reports whether anybody holds it.
func (p *pair) held(t *testing.T) bool { return p.redis.Exists(t, p.record(t)+".lock") }

// wantRuns checks how often the page's handler ran.
func (p *pair) wantRuns(t *testing.T, want int32) {
	t.Helper()
	if n := p.runs.Load(); n != want {
		t.Errorf("the handler ran %d times, want %d", n, want)
	}
}

// wantFree checks that nobody holds a session.
func (p *pair) wantFree(t *testing.T) {
	t.Helper()
	for _, key := range p.redis.Keys(t) {
		if strings.HasSuffix(key, ".lock") {
			t.Errorf("%s is there", key)
		}
	}
}

// P1: if another request changes the session while an optimistic handler runs, that runs again, on
// what is stored by then. Of the first time nothing is left: neither in the session nor in the
// answer.
func TestAnOptimisticHandlerRunsAgain(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			n := add(s)
			w.Header().Set(fmt.Sprintf("X-Run-%d", run), "yes")
			if run == 1 {
				s.Set("first", true)
				w.WriteHeader(http.StatusTeapot)
				fmt.Fprint(w, "never sent")
				p.another(t, "/add")
			}
			fmt.Fprintf(w, "%d in run %d", n, run)
		})
		a := p.v.get(p.here.URL + "/page")
		a.want(t, 200, "3 in run 2")
		if a.Header.Get("X-Run-1") != "" || a.Header.Get("X-Run-2") == "" || a.sets() {
			t.Errorf("the header is %v", a.Header)
		}
		p.v.get(p.here.URL+"/get").want(t, 200, "3")
		p.v.get(p.here.URL+"/len").want(t, 200, "1")
		p.wantRuns(t, 2)
		p.wantFree(t)
	})
}

// Optimistic reads wait for nobody, and are one round trip each. One that writes waits for a request
// that holds the session. If that has changed nothing, what was read is true, and the handler need
// not run again.
func TestAnOptimisticWriteWaitsForTheHolder(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]struct {
		answer string
		runs   int32
	}{"/hold": {"2", 1}, "/pause": {"501", 2}} {
		inFakeTime(t, path, func(t *testing.T, r *redistest.Server) {
			p := newPair(t, r, middleware.Options{}, func(_ *pair, _ int32, w http.ResponseWriter, req *http.Request) {
				fmt.Fprint(w, add(session.FromContext(req.Context())))
			})
			holder := newSite(t, r.Pool(t, 2), middleware.Options{}, app())
			free := p.tab(t).hold(holder.URL + path)
			got := p.v.start(p.here.URL + "/page")
			synctest.Wait()
			proxy := redistest.NewProxy(t, r)
			reads := newSite(t, proxy.Pool(t, 2), middleware.Options{Mode: optimisticGets}, app())
			for range 20 {
				p.tab(t).get(reads.URL+"/get").want(t, 200, "1")
			}
			if n := proxy.RoundTrips(); n != 20 {
				t.Errorf("%d round trips for 20 reads", n)
			}
			p.wantRuns(t, 1)
			if len(got) > 0 {
				t.Error("it was answered while another held the session")
			}
			free().want(t, 200, "*")
			(<-got).want(t, 200, want.answer)
			p.wantRuns(t, want.runs)
			p.wantFree(t)
		})
	}
}

// What the session has become meanwhile is what the second run finds, as any request would that
// comes then.
func TestTheSecondRunFindsWhatTheSessionHasBecome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, p *pair)
		status    int
		body      string
		sets      bool
	}{
		"logged out": {func(t *testing.T, p *pair) { p.another(t, "/logout") }, 409, "*", false},
		"logged in":  {func(t *testing.T, p *pair) { p.another(t, "/login") }, 409, "*", false},
		"run out":    {func(t *testing.T, p *pair) { p.redis.Do(t, "DEL", p.record(t)) }, 200, "1", true},
		"damaged, and not replaced": {func(t *testing.T, p *pair) {
			p.redis.Do(t, "SET", p.record(t), "garbage", "PX", 60_000)
		}, 500, "*", false},
		"the same, changed and held": {func(t *testing.T, p *pair) { p.another(t, "/add"); p.another(t, "/nothing") }, 200, "3", false},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
				if run == 1 {
					c.meanwhile(t, p)
				}
				fmt.Fprint(w, add(session.FromContext(req.Context())))
			})
			a := p.v.get(p.here.URL + "/page")
			a.want(t, c.status, c.body)
			if a.sets() != c.sets {
				t.Errorf("header %v", a.Header)
			}
			p.wantFree(t)
		})
	}
}

// The second run has the request as it came, whatever the first one has done to that, and what the
// first one has left running cannot disturb it.
func TestTheSecondRunBeginsAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var first struct {
			ctx context.Context
			s   *session.Session
			w   http.ResponseWriter
		}
		p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			_ = req.ParseForm()
			fmt.Fprint(w, req.Header.Get("Accept"), req.Header["X-Never"], req.URL.Path, req.Form["q"], add(s))
			if run == 1 {
				req.Header.Del("Accept")
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
			first.w.Header().Set("X-Stray", "yes")
			first.w.WriteHeader(http.StatusTeapot)
			_, written := first.w.Write([]byte("stray"))
			for what, err := range map[string]error{
				"commit": first.s.Commit(first.ctx), "write": written, "flush": http.NewResponseController(first.w).Flush(),
			} {
				if err == nil {
					t.Errorf("the first run could still %s", what)
				}
			}
		})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.here.URL+"/page?q=1", nil)
		must(t, err)
		req.Header.Set("Accept", "once")
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
	for what, bound := range map[string]time.Duration{"LockWait": 10 * time.Second, "the request's deadline": time.Second, "the client": time.Second} {
		inFakeTime(t, what, func(t *testing.T, r *redistest.Server) {
			p := newPair(t, r, middleware.Options{}, func(p *pair, _ int32, _ http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				p.redis.Do(t, "SET", p.record(t)+".lock", "another", "PX", 60_000)
				if what == "the client" {
					<-req.Context().Done()
				}
			})
			ctx := t.Context()
			switch what {
			case "the request's deadline":
				p.here.Config.Handler = http.TimeoutHandler(p.here.Config.Handler, bound, "too late")
			case "the client":
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, bound)
				defer cancel()
			}
			began := time.Now()
			if a := p.v.send(ctx, http.MethodGet, p.here.URL+"/page", nil); a.StatusCode == http.StatusOK {
				t.Error("it was answered")
			}
			if took := time.Since(began); took != bound {
				t.Errorf("it took %v, want %v", took, bound)
			}
			redistest.Elapse(2 * time.Second) // for one second it is tried without a client, too
			if len(p.here.log.Lines("session failed")) != 1 {
				t.Errorf("the request is not over; log:\n%s", p.here.log)
			}
			p.wantRuns(t, 1)
			r.Do(t, "DEL", p.record(t)+".lock")
			p.v.get(p.here.URL+"/get").want(t, 200, "1")
		})
	}
}

// P2: a client that goes away undoes nothing of what its request has done, if the session is free, or
// is within a second.
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
			inFakeTime(t, what+", "+name, func(t *testing.T, r *redistest.Server) {
				o := steady
				if c.locker {
					o.Locker = locker.NewSpin(r.Pool(t, 4), locker.Options{Timeout: 20 * time.Second})
				}
				mux, ran, key := app(), make(chan struct{}), ""
				handle(mux, "/page", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
					do(s)
					if c.busy {
						r.Do(t, "SET", key+".lock", "another", "PX", 60_000)
					}
					close(ran)
					<-req.Context().Done()
				})
				s := newSiteOn(t, store.New(r.Pool(t, 4), o), middleware.Options{Mode: optimisticGets, LockWait: time.Minute}, mux)
				v := s.visitor(t)
				key = recordOf(v.get(s.URL + "/id").body)
				before, _ := r.Get(t, key)
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-ran; cancel() }()
				if a := v.send(ctx, http.MethodGet, s.URL+"/page", nil); a.err == nil {
					t.Errorf("it was answered: %d", a.StatusCode)
				}
				redistest.Elapse(500 * time.Millisecond)
				if c.busy {
					r.Do(t, "DEL", key+".lock")
					redistest.Elapse(500 * time.Millisecond)
				}
				if after, _ := r.Get(t, key); after == before || r.Exists(t, key+".lock") {
					t.Error("nothing was done, or the session is still held")
				}
				if failed := s.log.Lines("session failed"); len(failed) > 0 {
					t.Errorf("%v", failed)
				}
			})
		}
	}
}

// A GET without a body is optimistic over any protocol, and with a limit for bodies around the
// sessions: it holds nothing while its handler runs, which has no body in either run.
func TestOptimisticOverAnyServer(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		inFakeTime(t, fmt.Sprint("HTTP/2: ", http2), func(t *testing.T, r *redistest.Server) {
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, w http.ResponseWriter, req *http.Request) {
				body, err := io.ReadAll(req.Body)
				if err != nil || len(body) > 0 || req.Body.Close() != nil || (req.ProtoMajor == 2) != http2 {
					t.Errorf("%s: the body is %q, %v", req.Proto, body, err)
				}
				if run == 1 {
					p.another(t, "/add")
				}
				fmt.Fprint(w, add(session.FromContext(req.Context())))
			})
			srv := httptest.NewUnstartedServer(http.MaxBytesHandler(p.here.Config.Handler, 1))
			srv.Listener.Close()
			srv.Listener, srv.EnableHTTP2 = memnet.Listen(""), http2
			srv.StartTLS()
			defer srv.Close()
			tab, transport := p.tab(t), srv.Client().Transport.(*http.Transport)
			transport.DialContext, transport.TLSClientConfig.ServerName = memnet.DialContext, "example.com"
			tab.Transport = transport
			tab.get(srv.URL+"/page").want(t, 200, "3")
			p.wantRuns(t, 2)
		})
	}
}

// The handler must not run again if its work may have left the process. The request is a 503
// then, and nothing of it is saved or sent.
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
		"an answer larger than Options.Buffer": func(w http.ResponseWriter, _ *http.Request) error {
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

// Mode Optimistic is for requests that may be repeated. In another one nothing is run.
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

// A body can be read only once, and a record that cannot be read may be replaced by OnCorrupt. Then
// the handler runs once, with the lock.
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

// Other Sessions around or inside take part in no second run: what they have would be changed twice.
// So inside of others a session is exclusive, and if others inside have saved something, there is no
// second run.
func TestOptimisticAmongOtherSessions(t *testing.T) {
	t.Parallel()
	for outer, inner := range map[middleware.Mode]middleware.Mode{
		middleware.Exclusive: middleware.Optimistic, middleware.Optimistic: middleware.Exclusive,
	} {
		inFakeTime(t, fmt.Sprintf("%v, and inside of it %v", outer, inner), func(t *testing.T, r *redistest.Server) {
			carts, staff, _ := cartsAndStaff(t, r, outer, inner)
			meanwhile, locked := func() {}, false
			mux := http.NewServeMux()
			mux.Handle("/both", carts.Handler(staff.Handler(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				add(carts.FromContext(req.Context()))
				add(staff.FromContext(req.Context()))
				locked = r.Exists(t, recordOf(staff.FromContext(req.Context()).ID())+".lock")
				meanwhile()
			}))))
			mux.Handle("/cart/", carts.Handler(http.StripPrefix("/cart", app())))
			mux.Handle("/staff/", staff.Handler(http.StripPrefix("/staff", app())))
			none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
			s := newSite(t, r.Pool(t, 1), none, mux)
			v := newVisitor(t)
			v.get(s.URL+"/both").want(t, 200, "*")
			status := 200
			if outer == middleware.Optimistic {
				status = 503
				meanwhile = func() { v.get(s.URL + "/cart/add") }
			}
			v.get(s.URL+"/both").want(t, status, "*")
			if !locked {
				t.Error("the inner session was not locked")
			}
			v.get(s.URL+"/cart/add").want(t, 200, "3") // 2 is of the other request, or of the first run
			v.get(s.URL+"/staff/add").want(t, 200, "3")
		})
	}
}

// A panic in the first run saves nothing and is no reason for a second one; one in the second run
// frees the session.
func TestAPanicInAnOptimisticHandler(t *testing.T) {
	t.Parallel()
	for in := range int32(2) {
		inFakeTime(t, fmt.Sprintf("run %d panics", in+1), func(t *testing.T, r *redistest.Server) {
			p := newPair(t, r, middleware.Options{}, func(p *pair, run int32, _ http.ResponseWriter, req *http.Request) {
				add(session.FromContext(req.Context()))
				if run == 1 {
					p.another(t, "/add")
				}
				if run == in+1 {
					panic(http.ErrAbortHandler)
				}
			})
			wire := dial(t, p.here.Server) // a client would repeat the GET
			wire.send("GET /page HTTP/1.1\r\nHost: x\r\nCookie: " + p.v.cookie(p.here).String() + "\r\n\r\n")
			if a := wire.read(); a.err == nil {
				t.Errorf("run %d has panicked, and the answer is %d %q", in+1, a.StatusCode, a.body)
			}
			p.wantRuns(t, in+1)
			p.v.get(p.here.URL+"/get").want(t, 200, "2")
			p.wantFree(t)
		})
	}
}

// P3: where it is not known whether the first run was saved, there is no second one.
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
		p.v.get(p.here.URL+"/get").want(t, 200, "4") // 3 was saved, and then another came
	})
}

// The network makes a copy of a save that was refused, since another held the session, and that is
// done once the session is free. The request finds its own record then, and does not run again.
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
