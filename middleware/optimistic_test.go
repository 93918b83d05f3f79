package middleware_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
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

// An optimistic request that writes waits for a request that holds the session. If that has changed
// nothing, what was read is true, and the handler need not run again.
func TestAnOptimisticWriteWaitsForTheHolder(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for path, want := range map[string]struct {
			answer string
			runs   int32
		}{
			"/hold":     {"2", 1},
			"/hold/add": {"3", 2},
		} {
			held, free := make(chan struct{}), make(chan struct{})
			ran := make(chan struct{}, 2)
			p := newPair(t, r, middleware.Options{}, func(_ *pair, _ int32, w http.ResponseWriter, req *http.Request) {
				fmt.Fprint(w, add(session.FromContext(req.Context())))
				ran <- struct{}{}
			})
			mux := app()
			mux.HandleFunc(path, func(_ http.ResponseWriter, req *http.Request) {
				close(held)
				<-free
				if strings.HasSuffix(path, "/add") {
					add(session.FromContext(req.Context()))
				}
			})
			holder := newSite(t, r.Pool(t, 2), middleware.Options{}, mux)
			holding := make(chan answer, 1)
			go func() { holding <- p.tab(t).post(holder.URL + path) }()
			<-held
			got := make(chan answer, 1)
			go func() { got <- p.v.get(p.here.URL + "/page") }()
			<-ran
			p.v.get(p.here.URL+"/get").want(t, 200, "1") // which waits for nobody
			select {
			case a := <-got:
				t.Errorf("%s: it was answered while another held the session: %q", path, a.body)
				got <- a
			default:
			}
			close(free)
			a := <-holding
			a.want(t, 200, "")
			a = <-got
			a.want(t, 200, want.answer)
			p.wantRuns(t, want.runs)
			p.wantFree(t)
		}
	})
}

// P1: of 100 concurrent GETs that each add 1, in two processes, 100 are kept, beside POSTs that
// do so, too.
func TestConcurrentOptimisticWritesAllStay(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		process := func() *site {
			patient := store.Options{Timeout: 20 * time.Second} // the embedded Redis is slow at scripts
			return newSiteOn(t, store.New(r.Pool(t, 10), patient), middleware.Options{Mode: optimisticGets, LockWait: time.Minute}, app())
		}
		sites := []*site{process(), process()}
		v := newVisitor(t)
		v.get(sites[0].URL+"/add").want(t, 200, "1")
		var crowd sync.WaitGroup
		for i := range 120 {
			method := http.MethodGet
			if i%6 == 0 {
				method = http.MethodPost
			}
			crowd.Go(func() {
				if a := v.send(t.Context(), method, sites[i%2].URL+"/add", nil); a.err != nil || a.StatusCode != 200 {
					t.Errorf("write %d: %v %d %s", i, a.err, a.StatusCode, a.body)
				}
			})
		}
		crowd.Wait()
		v.get(sites[0].URL+"/get").want(t, 200, "121")
	})
}

// Where nobody has written, all of that works as in any request. After its Commit the handler may
// reopen the session, which then waits for it.
func TestAnOptimisticHandlerCommitsAndReopens(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		p := newPair(t, r, middleware.Options{}, func(p *pair, _ int32, w http.ResponseWriter, req *http.Request) {
			s := session.FromContext(req.Context())
			add(s)
			must(t, s.Commit(req.Context()))
			p.another(t, "/add")
			must(t, s.Reopen(req.Context()))
			if _, held := r.Get(t, recordOfSite(t, p)+".lock"); !held {
				t.Error("the session was not locked")
			}
			fmt.Fprint(w, add(s))
		})
		p.v.get(p.here.URL+"/page").want(t, 200, "4")
		p.v.get(p.here.URL+"/get").want(t, 200, "4")
		p.wantRuns(t, 1)
		p.wantFree(t)
	})
}

// With a Locker of one's own nothing is saved without it. All the same nothing is lost.
func TestOptimisticWithALocker(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		open := func() *site {
			lock := locker.NewSpin(r.Pool(t, 4), locker.Options{Wait: time.Minute, Timeout: 20 * time.Second})
			st := store.New(r.Pool(t, 4), store.Options{Locker: lock, Timeout: 20 * time.Second})
			return newSiteOn(t, st, middleware.Options{Mode: optimisticGets}, app())
		}
		sites := []*site{open(), open()}
		v := newVisitor(t)
		v.get(sites[0].URL+"/add").want(t, 200, "1")
		var crowd sync.WaitGroup
		for i := range 20 {
			crowd.Go(func() {
				if a := v.get(sites[i%2].URL + "/add"); a.err != nil || a.StatusCode != 200 {
					t.Errorf("%v %d %s", a.err, a.StatusCode, a.body)
				}
			})
		}
		crowd.Wait()
		v.get(sites[1].URL+"/get").want(t, 200, "21")
	})
}

// Optimistic reads wait for nobody: while another request holds the session, each is one round trip,
// and sees what was last saved.
func TestOptimisticReadsDoNotWait(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := pausing(mux)
		holder := newSite(t, r.Pool(t, 2), middleware.Options{}, mux)
		proxy := redistest.NewProxy(t, r)
		patient := store.Options{Timeout: 20 * time.Second} // or a busy machine makes it ask whether Redis is alive
		s := newSiteOn(t, store.New(proxy.Pool(t, 4), patient), middleware.Options{Mode: optimisticGets}, app())
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		v.get(s.URL+"/get").want(t, 200, "1")
		holding := make(chan answer, 1)
		go func() { holding <- v.post(holder.URL + "/pause") }()
		<-busy
		proxy.Forget()
		for range 20 {
			v.get(s.URL+"/get").want(t, 200, "1")
		}
		if n := proxy.RoundTrips(); n != 20 {
			t.Errorf("%d round trips for 20 reads", n)
		}
		close(free)
		if a := <-holding; a.StatusCode != http.StatusOK {
			t.Errorf("the holder: %d, %v", a.StatusCode, a.err)
		}
	})
}
