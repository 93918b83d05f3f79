package middleware_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// who returns what the requests of a site do now, and for how long, one a line. Names of visitors replace IDs.
func (s *site) who(names map[string]string) string {
	var lines []string
	for r := range s.sessions.Requests() {
		process := ""
		if r.Process != "" {
			process = " elsewhere"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s for %v%s", names[r.Session], r.State, r.Label, time.Since(r.Since).Round(time.Millisecond), process))
	}
	return strings.Join(lines, "\n")
}

// Requests shows who holds which session, who waits behind it, in line, and which streams are open.
func TestRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/stream", func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).Flush()
			waitUntilFree(r)
		})
		s, ann := begun(t, r, middleware.Options{}, mux)
		bob := s.visitor(t)
		names := map[string]string{ann.get(s.URL + "/id").body: "ann", bob.get(s.URL + "/id").body: "bob"}
		want := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			if got := s.who(names); got != strings.Join(lines, "\n") {
				t.Errorf("it shows\n%s\nwant\n%s", got, strings.Join(lines, "\n"))
			}
		}
		want()
		stream := ann.hold(s.URL + "/stream")
		want("ann open GET /stream for 0s")
		time.Sleep(time.Second)
		free := bob.hold(s.URL + "/pause")
		time.Sleep(time.Second)
		first := bob.start(s.URL + "/add")
		time.Sleep(time.Second)
		synctest.Wait()
		second := bob.start(s.URL + "/get")
		want("ann open GET /stream for 3s",
			"bob holds GET /pause for 2s",
			"bob waits GET /add for 1s",
			"bob waits GET /get for 0s")
		free()
		<-first
		<-second
		want("ann open GET /stream for 3s")
		stream()
		want()
	})
}

// An Optimistic request that has written waits for the lock. It is shown once, as one that waits.
func TestRequestsShowAWaiterOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux, save := app(), make(chan struct{})
		mux.HandleFunc("/visit", func(_ http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("visited", true)
			<-save
		})
		options := middleware.Options{Mode: func(r *http.Request) middleware.Mode {
			if r.URL.Path == "/visit" {
				return middleware.Optimistic
			}
			return middleware.Exclusive
		}}
		s, ann := begun(t, r, options, mux)
		names := map[string]string{ann.get(s.URL + "/id").body: "ann"}
		visit := ann.start(s.URL + "/visit")
		synctest.Wait()
		free := ann.hold(s.URL + "/pause")
		time.Sleep(time.Second)
		close(save)
		synctest.Wait()
		const want = "ann holds GET /pause for 1s\nann waits GET /visit for 0s"
		if got := s.who(names); got != want {
			t.Errorf("it shows\n%s\nwant\n%s", got, want)
		}
		free()
		<-visit
	})
}

// If requests of this process wait for a holder in another process, that holder is shown. An Update that holds the
// session is shown, too.
func TestRequestsShowOtherHolders(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		here, v := begun(t, r, middleware.Options{}, app())
		id := v.get(here.URL + "/id").body
		names := map[string]string{id: "v"}
		// The label and the process of a lock are in its token.
		_, lock := keysOf(id)
		r.Do(t, "SET", lock, "AAAAAAAAAAAAAAAA 946684800000 web-2/77 POST /order", "PX", 5000)
		wait := v.start(here.URL + "/add")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := here.who(names); !strings.HasPrefix(got, "v holds POST /order for ") || !strings.HasSuffix(got, " elsewhere\nv waits GET /add for 1ms") {
			t.Errorf("it shows\n%s", got)
		}
		(<-wait).want(t, 200, "2")

		begunUpdate, endUpdate := make(chan struct{}), make(chan struct{})
		done := make(chan error)
		go func() {
			done <- here.sessions.Update(t.Context(), id, func(*session.Session) error {
				close(begunUpdate)
				<-endUpdate
				return nil
			})
		}()
		<-begunUpdate
		if got := here.who(names); !strings.HasPrefix(got, "v holds Update for ") { // since the time in the token, in ms
			t.Errorf("it shows\n%s", got)
		}
		close(endUpdate)
		must(t, <-done)
		if all := slices.Collect(here.sessions.Requests()); len(all) != 0 {
			t.Errorf("it shows %v", all)
		}
	})
}

// hangingSite has a route /slow-add, whose handler goes on when free is closed, and a way to Redis that can hang.
func hangingSite(t *testing.T, r *redistest.Server) (s *site, v *visitor, way *redistest.Proxy, free chan struct{}) {
	t.Helper()
	way = redistest.NewProxy(t, r)
	mux := app()
	free = make(chan struct{})
	handle(mux, "/slow-add", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { add(s); <-free })
	s = newSite(t, way.Pool(t, 4), middleware.Options{}, mux)
	return s, s.visitor(t), way, free
}

// Only one request holds a session. A request that has passed the session on does not hold it, although its changes
// are not stored yet.
func TestRequestsShowOneHolder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v, proxy, free := hangingSite(t, r)
		names := map[string]string{v.get(s.URL + "/id").body: "v"}
		write := v.start(s.URL + "/slow-add")
		synctest.Wait()
		time.Sleep(time.Millisecond)
		next := make(chan func() answer)
		go func() { next <- v.hold(s.URL + "/pause") }()
		synctest.Wait()
		proxy.Inject(func(redistest.Command) redistest.Fault { return redistest.HangCommand })
		close(free)
		synctest.Wait() // the write is on its way to Redis, and the next request has the session
		const want = "v holds GET /pause for 0s\nv open GET /slow-add for 1ms"
		if got := s.who(names); got != want {
			t.Errorf("it shows\n%s\nwant\n%s", got, want)
		}
		proxy.Inject(nil)
		proxy.Release()
		<-write
		(<-next)()
	})
}

// The same is true if a request has passed the session on to an Update.
func TestRequestsShowAnUpdateThatHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v, proxy, free := hangingSite(t, r)
		id := v.get(s.URL + "/id").body
		write := v.start(s.URL + "/slow-add")
		synctest.Wait()
		time.Sleep(time.Millisecond)
		end, done := make(chan struct{}), make(chan error, 1)
		go func() {
			done <- s.sessions.Update(t.Context(), id, func(*session.Session) error { <-end; return nil })
		}()
		synctest.Wait()
		proxy.Inject(func(redistest.Command) redistest.Fault { return redistest.HangCommand })
		close(free)
		synctest.Wait()
		const want = "v holds Update for 0s\nv open GET /slow-add for 1ms"
		if got := s.who(map[string]string{id: "v"}); got != want {
			t.Errorf("it shows\n%s\nwant\n%s", got, want)
		}
		proxy.Inject(nil)
		proxy.Release()
		<-write
		close(end)
		must(t, <-done)
	})
}

// A request that has lost its lock does not hold the session, whatever its handler does.
func TestRequestsDoNotShowWhoHasLostItsLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{MaxHold: 12 * time.Second}, app())
		names := map[string]string{v.get(s.URL + "/id").body: "v"}
		want := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := s.who(names); got != want {
				t.Errorf("it shows\n%s\nwant\n%s", got, want)
			}
		}
		lost := v.hold(s.URL + "/pause")
		time.Sleep(5 * time.Second)
		second := make(chan func() answer)
		go func() { second <- v.hold(s.URL + "/pause") }()
		free := <-second // after MaxHold
		want("v holds GET /pause for 0s\nv open GET /pause for 12s")
		free()
		want("v open GET /pause for 12s")
		if lines := s.log.Lines("a handler has held its session for MaxHold"); len(lines) != 1 || !strings.Contains(lines[0], "route=/pause") || !strings.Contains(lines[0], "held=12s") {
			t.Errorf("log:\n%s", s.log)
		}
		lost()
	})
}

// The label of a request that holds no lock is its route: what cannot be printed is replaced, as in other labels.
func TestARouteIsPrintable(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		mux := app()
		handle(mux, "/odd\u202e/{x}", func(ss *session.Session, _ http.ResponseWriter, r *http.Request) {
			add(ss)
			must(t, ss.Commit(r.Context()))
			for one := range s.sessions.Requests() {
				if want := "GET /odd\ufffd/{x}"; one.Label != want {
					t.Errorf("the label is %q, want %q", one.Label, want)
				}
			}
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		v.get(s.URL+"/odd%E2%80%AE/1").want(t, 200, "")
	})
}
