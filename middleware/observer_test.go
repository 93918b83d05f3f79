package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A witness is an observer that keeps what it is told.
type witness struct {
	mu     sync.Mutex
	events []middleware.Event
	ctxs   []context.Context
}

func (w *witness) Observe(ctx context.Context, e middleware.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events, w.ctxs = append(w.events, e.Clone()), append(w.ctxs, ctx)
}

// takeAll waits until all goroutines of the bubble are idle, and returns what was told since the last call.
func (w *witness) takeAll() []middleware.Event {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.events
	w.events, w.ctxs = nil, nil
	return all
}

// requestsIn returns the events of requests.
func requestsIn(events []middleware.Event) (all []*middleware.RequestEvent) {
	for _, e := range events {
		if r, ok := e.(*middleware.RequestEvent); ok {
			all = append(all, r)
		}
	}
	return all
}

// happenings returns what has happened to sessions, in a word or two each.
func happenings(events []middleware.Event) (all []string) {
	for _, e := range events {
		if s, ok := e.(*middleware.SessionEvent); ok {
			all = append(all, strings.TrimSpace(s.What+" "+s.How))
		}
	}
	return all
}

// one returns the only event of a request.
func (w *witness) one(t *testing.T) *middleware.RequestEvent {
	t.Helper()
	all := requestsIn(w.takeAll())
	if len(all) != 1 {
		t.Fatalf("%d events of requests, want one", len(all))
	}
	return all[0]
}

// A request's event says what became of its session, how often it has asked Redis, and how large the record is.
func TestARequestIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		mux := app()
		s := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{
			"/get": middleware.ReadOnly, "/len": middleware.Optimistic})}, mux)
		s.visitor(t).get(s.URL+"/login").want(t, 200, "") // Redis knows the scripts now, and the process Redis's clock
		w.takeAll()
		v := newVisitor(t)
		v.get(s.URL+"/nothing").want(t, 200, "")
		if all := w.takeAll(); len(all) > 0 {
			t.Errorf("a request without a session has the events %v", all)
		}
		var dead []*http.Cookie // of the session that has ended
		for _, tt := range []struct {
			path, outcome string
			trips         int
			flags         string
		}{
			{"/add", "began", 1, "began"},
			{"/add", "saved", 2, ""},
			{"/id", "touched", 2, ""},
			{"/get", "unchanged", 1, ""},
			{"/len", "unchanged", 1, ""},
			{"/login", "renewed", 3, "renewed"},
			{"/logout", "ended", 2, "ended"},
		} {
			if tt.path == "/logout" {
				dead = v.cookies(s)
			}
			v.get(s.URL+tt.path).want(t, 200, "*")
			events := w.takeAll()
			e := requestsIn(events)[0]
			var flags []string
			for name, set := range map[string]bool{"began": e.Began, "renewed": e.Renewed, "ended": e.Ended, "logged in": e.LoggedIn} {
				if set {
					flags = append(flags, name)
				}
			}
			exchanges := len(events) - 1 - len(happenings(events))
			if e.Outcome != tt.outcome || e.RoundTrips != tt.trips || exchanges != tt.trips || strings.Join(flags, " ") != tt.flags {
				t.Errorf("%s: %s in %d round trips, %d exchanges, %v; want %s, %d, %s", tt.path, e.Outcome, e.RoundTrips, exchanges, flags, tt.outcome, tt.trips, tt.flags)
			}
			if e.Label != "GET "+tt.path || e.Route != tt.path || e.Method != "GET" || e.Runs != 1 || e.Session == "" || e.Kind != "" {
				t.Errorf("%s: %+v", tt.path, e)
			}
			if e.Bytes == 0 && tt.outcome != "ended" {
				t.Errorf("%s: no size", tt.path)
			}
		}
		with(t, dead...).get(s.URL+"/get").want(t, 200, "*")
		if e := requestsIn(w.takeAll())[0]; e.Dead != 1 || e.Session != "" {
			t.Errorf("with the cookie of a session that has ended: %+v", e)
		}
	})
}

// If an optimistic request waits for the lock at its commit, its event says behind which request.
func TestAnOptimisticWaitIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		o := middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{"/add": middleware.Optimistic})}
		s, v := begun(t, r, o, app())
		w.takeAll()
		free := v.hold(s.URL + "/pause")
		first := v.start(s.URL + "/add")
		time.Sleep(time.Second)
		synctest.Wait()
		second := v.start(s.URL + "/add")
		time.Sleep(time.Second)
		synctest.Wait()
		free().want(t, 200, "stored")
		(<-first).want(t, 200, "501")
		(<-second).want(t, 200, "502")
		all := requestsIn(w.takeAll())
		slices.SortFunc(all, func(a, b *middleware.RequestEvent) int { return a.Arrived.Compare(b.Arrived) })
		for i, want := range []time.Duration{0, 2 * time.Second, time.Second} {
			if e := all[i]; e.Waited != want || i > 0 && (e.Behind != "GET /pause" || e.Runs != 2 || e.Queue != i-1 || e.Acquired.Sub(e.Arrived) > 0) {
				t.Errorf("request %d: %+v", i, e)
			}
			if h := all[i].Holds; len(h) != 1 || h[0].Acquired.Sub(h[0].Asked) != want || h[0].Released != all[i].Committed || h[0].Behind != all[i].Behind {
				t.Errorf("the holds of request %d are %+v", i, h)
			}
		}
	})
}

// A Commit of the first run, which was discarded, does not end the hold of the second run.
func TestADiscardedRunEndsNoHold(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, mux := &witness{}, app()
		var discarded *session.Session
		conflict := func() {}
		handle(mux, "/twice", func(s *session.Session, _ http.ResponseWriter, req *http.Request) {
			if discarded == nil {
				discarded = s
				conflict()
			} else {
				_ = discarded.Commit(req.Context())
				time.Sleep(2 * time.Second)
			}
			add(s)
		})
		o := middleware.Options{Observers: []middleware.Observer{w}, Mode: byPath(map[string]middleware.Mode{"/twice": middleware.Optimistic})}
		s, v := begun(t, r, o, mux)
		conflict = func() { with(t, v.cookies(s)...).get(s.URL+"/add").want(t, 200, "2") }
		v.get(s.URL+"/twice").want(t, 200, "")
		all := requestsIn(w.takeAll())
		if e := all[len(all)-1]; e.Route != "/twice" || e.Runs != 2 || e.Held != 2*time.Second {
			t.Errorf("%+v", e)
		}
	})
}

// The beginning, the new IDs and the end of each session are told once, whoever has ended it. The event of the end
// says how it has ended. MaxSessions calls Hooks.End as well.
func TestTheLivesOfSessionsAreObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w, log := &witness{}, audit{}
		mux := app()
		handle(mux, "/user", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Login("ann") })
		s := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{w}, Hooks: log.hooks(), MaxSessions: 1}, mux)
		want := func(what ...string) {
			t.Helper()
			got := happenings(w.takeAll())
			if !slices.Equal(got, what) {
				t.Errorf("%q was told, want %q", got, what)
			}
		}
		v := newVisitor(t)
		v.post(s.URL+"/add").want(t, 200, "1")
		want("began")
		v.post(s.URL+"/user").want(t, 200, "")
		want("renewed login")
		first := v.get(s.URL + "/id").body
		v2 := newVisitor(t)
		log.forget()
		w.takeAll()
		v2.post(s.URL+"/user").want(t, 200, "")
		want("ended max_sessions", "began login")
		second := v2.get(s.URL + "/id").body
		log.want(t, "end "+first, "begin "+second)
		w.takeAll()
		must(t, s.sessions.End(t.Context(), second))
		want("ended end")
		v3 := newVisitor(t)
		v3.post(s.URL+"/user").want(t, 200, "")
		v3.post(s.URL+"/login").want(t, 200, "")
		want("began login", "renewed renew")
		_, err := s.sessions.EndAll(t.Context(), "ann")
		must(t, err)
		want("ended end_all")
		v4 := newVisitor(t)
		v4.post(s.URL+"/add").want(t, 200, "1")
		v4.post(s.URL+"/logout").want(t, 200, "")
		want("began", "ended destroy")
	})
}

// The event of an exchange names its script or command, its size, and the word with which Redis has refused it. No
// event has what only the visitor may know.
func TestAnExchangeIsObserved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		s := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{w}}, app())
		newVisitor(t).post(s.URL+"/add").want(t, 200, "1") // from now on the process knows Redis's clock
		w.takeAll()
		v := newVisitor(t)
		v.post(s.URL+"/add").want(t, 200, "1")
		v.post(s.URL+"/add").want(t, 200, "2")
		var got []string
		for _, e := range w.takeAll() {
			if strings.Contains(fmt.Sprintf("%+v", e), v.cookie(s).Value) {
				t.Errorf("%+v has the cookie", e)
			}
			x, ok := e.(*middleware.ExchangeEvent)
			if !ok {
				continue
			}
			if x.Sent < 40 || x.Received == 0 || x.Began.IsZero() || x.Err != nil {
				t.Errorf("%+v", x)
			}
			got = append(got, fmt.Sprintf("%s %s %d %d %s", x.Script, x.Command, x.Commands, x.Holds, x.Status))
		}
		want := []string{"create EVALSHA 1 0 ", " SET 3 0 ", "commit EVALSHA 1 1 NOSCRIPT", "commit EVAL 1 1 "}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// An observer that panics, blocks or ends its goroutine costs its own request, and no other: not the holder's lease,
// and not the next request for the same session.
func TestABadObserverCostsItsRequestAtMost(t *testing.T) {
	for name, do := range map[string]func(){
		"panics": func() { panic("no observer") },
		"exits":  runtime.Goexit,
		"blocks": nil,
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			stop := make(chan struct{})
			bad := observerFunc(func(_ context.Context, e middleware.Event) {
				x, ok := e.(*middleware.RequestEvent)
				if ok && x.Route == "/pause" || !ok && fmt.Sprintf("%T", e) == "*middleware.SessionEvent" && e.(*middleware.SessionEvent).What == "extended" {
					if do == nil {
						<-stop
					} else {
						do()
					}
				}
			})
			w := &witness{}
			s := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Lease: 3 * time.Second}), middleware.Options{Observers: []middleware.Observer{bad, w}}, app())
			v := s.visitor(t)
			free := v.hold(s.URL + "/pause")
			time.Sleep(10 * time.Second) // the lease is extended
			done := make(chan answer)
			go func() { done <- free() }()
			v2 := with(t, v.cookies(s)...)
			v2.post(s.URL+"/add").want(t, 200, "501")
			close(stop)
			if a := <-done; name == "panics" {
				a.want(t, 200, "stored")
			}
			extended, all := 0, w.takeAll()
			for _, h := range happenings(all) {
				if h == "extended" {
					extended++
				}
			}
			if extended < 5 {
				t.Errorf("the other observer was told of %d extensions", extended)
			}
			if !slices.ContainsFunc(requestsIn(all), func(e *middleware.RequestEvent) bool { return e.Route == "/pause" }) {
				t.Error("the other observer was not told of the request")
			}
		})
	}
}

// An observer may use the Sessions while it is told: nothing is held then, whatever the event.
func TestAnObserverMayUseTheSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		var s *site
		others := make(chan string, 1000)
		told := make(map[string]int)
		var mu sync.Mutex
		o := observerFunc(func(ctx context.Context, e middleware.Event) {
			what := fmt.Sprintf("%T", e)
			if x, ok := e.(*middleware.SessionEvent); ok {
				what = x.What
			}
			mu.Lock()
			told[what]++
			again := told[what] > 2 || s == nil // or each use would be told, be used again, and so on
			mu.Unlock()
			if again {
				return
			}
			for range s.sessions.Requests() {
			}
			id := <-others
			if _, err := s.sessions.Peek(ctx, id); err != nil {
				t.Errorf("at %s: Peek: %v", what, err)
			}
			if err := s.sessions.Update(ctx, id, func(s *session.Session) error { s.Set("seen", what); return nil }); err != nil {
				t.Errorf("at %s: Update: %v", what, err)
			}
			if err := s.sessions.End(ctx, id); err != nil {
				t.Errorf("at %s: End: %v", what, err)
			}
		})
		st := store.New(r.Pool(t, 4), store.Options{Lease: 3 * time.Second})
		plain := newSiteOn(t, st, middleware.Options{}, app())
		for range 40 {
			v := newVisitor(t)
			v.post(plain.URL+"/add").want(t, 200, "1")
			others <- v.get(plain.URL + "/id").body
		}
		s = newSiteOn(t, st, middleware.Options{Observers: []middleware.Observer{o}, MaxHold: 10 * time.Second, LockWait: 20 * time.Second}, app())
		v := s.visitor(t)
		free := v.hold(s.URL + "/pause")
		waits := v.start(s.URL + "/add")
		time.Sleep(15 * time.Second) // the lease is extended, and then lost
		(<-waits).want(t, 200, "*")
		free().want(t, 503, "*")
		v.post(s.URL+"/login").want(t, 200, "")
		v.post(s.URL+"/logout").want(t, 200, "")
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for _, what := range []string{"*middleware.RequestEvent", "*middleware.ExchangeEvent", "began", "extended", "lost", "renewed", "ended"} {
			if told[what] == 0 {
				t.Errorf("no %s was told", what)
			}
		}
	})
}

type observerFunc func(context.Context, middleware.Event)

func (f observerFunc) Observe(ctx context.Context, e middleware.Event) { f(ctx, e) }

// An exchange names the server, and the database, of a store that was opened by its URL.
func TestTheServerIsObserved(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	st, err := store.Open(r.URL+"/3", store.Options{})
	must(t, err)
	defer st.Close()
	w := &witness{}
	s := newSiteOn(t, st, middleware.Options{Observers: []middleware.Observer{w}}, app())
	newVisitor(t).post(s.URL+"/add").want(t, 200, "1")
	s.Close() // then all was told
	w.mu.Lock()
	defer w.mu.Unlock()
	exchanges := 0
	for _, e := range w.events {
		if x, ok := e.(*middleware.ExchangeEvent); ok {
			if exchanges++; x.Node != r.Addr || x.Database != "3" {
				t.Errorf("database %q of %q was asked, want 3 of %q", x.Database, x.Node, r.Addr)
			}
		}
	}
	if exchanges == 0 {
		t.Error("no exchange was told")
	}
}

// An observer that is given twice is told once.
func TestAnObserverThatIsGivenTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		s, v := begun(t, r, middleware.Options{Observers: []middleware.Observer{w, w}}, app())
		w.takeAll()
		v.get(s.URL+"/add").want(t, 200, "2")
		if told := requestsIn(w.takeAll()); len(told) != 1 {
			t.Errorf("the observer is told of %+v", told)
		}
	})
}

// A request's own label is the one that waiters are told: short, and printable.
func TestALabelIsPrintable(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		o := middleware.Options{Observers: []middleware.Observer{w},
			Label: func(*http.Request) string { return "\x1b" + strings.Repeat("x", 100) }}
		s, v := begun(t, r, o, app())
		w.takeAll()
		v.get(s.URL + "/add")
		if told := requestsIn(w.takeAll()); len(told) != 1 || told[0].Label != "\ufffd"+strings.Repeat("x", 61) {
			t.Errorf("the request is told as %+v", told)
		}
	})
}

// A client that chooses a method cannot bring a path into an event, or look as if it were on another route. A ServeMux
// answers a CONNECT for a tree with a redirect, and says that the path is its pattern. Over HTTP/2 a method may be any text.
func TestAMethodIsNoRoute(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		w := &witness{}
		mux := app()
		handle(mux, "/reset/{token}/", func(*session.Session, http.ResponseWriter, *http.Request) {})
		outer := http.NewServeMux()
		outer.Handle("/reset/", mux)
		s := newSite(t, r.Pool(t, 4), middleware.Options{Observers: []middleware.Observer{w}}, mux)
		cookie, _ := s.count(t, 1)
		w.takeAll()
		for _, next := range []http.Handler{mux, outer, http.HandlerFunc(mux.ServeHTTP)} {
			for method, want := range map[string]string{
				"CONNECT": "CONNECT", "PROPFIND": "PROPFIND", "POST /pay": "_OTHER", "\u009b31m": "_OTHER",
			} {
				req := httptest.NewRequest(http.MethodGet, "/reset/secret/", nil)
				if method == http.MethodConnect {
					req.URL.Path = "/reset/secret"
				}
				req.Method = method
				req.AddCookie(cookie)
				s.sessions.Handler(next).ServeHTTP(httptest.NewRecorder(), req)
				all := requestsIn(w.takeAll())
				if len(all) != 1 {
					t.Errorf("%q: %d events", method, len(all))
				}
				for _, e := range all {
					if told := e.Method + e.Route + e.Label; e.Method != want || strings.Contains(told, "secret") || strings.Contains(told, "pay") {
						t.Errorf("%q: the request is told as %q, a %s on %q", method, e.Label, e.Method, e.Route)
					}
				}
			}
		}
	})
}
