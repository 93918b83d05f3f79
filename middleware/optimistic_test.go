package middleware_test

import (
	"context"
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
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// optimisticGets is an Options.Mode, the one that the guide recommends.
func optimisticGets(r *http.Request) middleware.Mode {
	if r.Method == http.MethodGet {
		return middleware.Optimistic
	}
	return middleware.Exclusive
}

// A pair is two processes with the routes of app, and a visitor whose session has n = 1. GETs are optimistic and
// POSTs are exclusive in the first process, which also has a page. The visitor's cookie is from the first process.
type pair struct {
	here, elsewhere *site
	v               *visitor
	redis           *redistest.Server
	runs            atomic.Int32 // of the page
}

// newPair returns a pair. run is the number of the run of the page's handler, counted from 1.
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

// tab returns a visitor with the present cookies, who can also go to the other process.
func (p *pair) tab(t *testing.T) *visitor { return with(t, p.v.cookies(p.here)...) }

// another makes another request meanwhile, in the other process.
func (p *pair) another(t *testing.T, path string) {
	t.Helper()
	if a := p.tab(t).post(p.elsewhere.URL + path); a.err != nil || a.StatusCode != http.StatusOK {
		t.Errorf("another request: %d, %v", a.StatusCode, a.err)
	}
}

// record returns the key of the only session.
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

// held reports whether the session is locked.
func (p *pair) held(t *testing.T) bool { return p.redis.Exists(t, p.record(t)+".lock") }

// wantRuns checks how often the page's handler ran.
func (p *pair) wantRuns(t *testing.T, want int32) {
	t.Helper()
	if n := p.runs.Load(); n != want {
		t.Errorf("the handler ran %d times, want %d", n, want)
	}
}

// wantFree checks that no session is locked.
func (p *pair) wantFree(t *testing.T) {
	t.Helper()
	for _, key := range p.redis.Keys(t) {
		if strings.HasSuffix(key, ".lock") {
			t.Errorf("the lock %s is left", key)
		}
	}
}

// P1: if another request changes the session while an optimistic handler runs, the handler runs
// again on the current data. Nothing of the first run is left, in the session or in the response.
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

// Optimistic reads never wait, and cost one round trip each. A request that writes waits for the
// holder of the session. If the holder changes nothing, the handler need not run again.
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
				t.Error("the write was answered while another request held the session")
			}
			free().want(t, 200, "*")
			(<-got).want(t, 200, want.answer)
			p.wantRuns(t, want.runs)
			p.wantFree(t)
		})
	}
}

// The second run finds the session in its current state, as any new request would.
func TestTheSecondRunFindsWhatTheSessionHasBecome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, p *pair)
		status    int
		body      string
		sets      bool
	}{
		"logged out": {func(t *testing.T, p *pair) { p.another(t, "/logout") }, 200, "1", true},
		"logged in":  {func(t *testing.T, p *pair) { p.another(t, "/login") }, 409, "*", false},
		"expired":    {func(t *testing.T, p *pair) { p.redis.Do(t, "DEL", p.record(t)) }, 200, "1", true},
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

// P5: A request waits for LockWait in all, even if it waits for two sessions: first for the member's, which ends when
// the first run is about to be saved, and then for the guest's.
func TestTheSecondRunWaitsForWhatIsLeftOfLockWait(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		handle(mux, "/leave", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
			time.Sleep(6 * time.Second)
			s.Destroy()
		})
		holder := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		pages := newSite(t, r.Pool(t, 4), middleware.Options{Mode: optimisticGets, LockWait: 10 * time.Second}, mux)
		member, guest := newVisitor(t).everywhere(), newVisitor(t).everywhere()
		member.get(holder.URL+"/login").want(t, 200, "*")
		guest.get(holder.URL+"/add").want(t, 200, "1")
		both := with(t, append(member.cookies(holder), guest.cookies(holder)...)...)

		free := guest.hold(holder.URL + "/hold")
		left := member.start(holder.URL + "/leave")
		synctest.Wait()
		began := time.Now()
		both.get(pages.URL+"/add").want(t, 503, "*")
		if waited := time.Since(began); waited < 10*time.Second || waited > 11*time.Second {
			t.Errorf("it waited for %v", waited)
		}
		free().want(t, 200, "*")
		(<-left).want(t, 200, "*")
	})
}

// The second run gets the request as it came, whatever the first run has done to it. Goroutines of
// the first run cannot disturb it.
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
			t.Errorf("the log has changes of the first run: %q", lines)
		}
		p.wantRuns(t, 2)
	})
}

// A GET without a body is optimistic over any protocol, even with a limit for bodies around the sessions. The request
// holds nothing while its handler runs. The handler sees no body in either run.
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

// Other Sessions, around or inside, take no part in a second run: their sessions would be changed twice. So a session
// inside others is exclusive. If Sessions inside have saved something, there is no second run.
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
			v.get(s.URL+"/cart/add").want(t, 200, "3") // the other request, or the first run, has made it 2
			v.get(s.URL+"/staff/add").want(t, 200, "3")
		})
	}
}
