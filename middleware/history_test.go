package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/history"
	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// P1, P4: Increments made in every possible way, among reads, logins and logouts in two processes, are linearizable.
func TestHistoriesWithReopenDiscardAndUpdate(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		ctx, enough := context.WithCancel(t.Context())
		defer enough()
		var requests atomic.Int32
		var sites history.Sites
		for range 2 {
			h := &historian{came: func() {
				if requests.Add(1) == 500 {
					enough()
				}
			}}
			s := newSite(t, r.Pool(t, 8), middleware.Options{Mode: readsOnly}, h)
			h.sessions = s.sessions
			sites.Add(s.URL)
		}
		v := &history.Visitor{HTTP: newVisitor(t).Client, Site: sites.Any, Logins: true,
			Reads: []string{"/count", "/count/again"}, Writes: []string{"/incr", "/incr/reopen", "/incr/discard", "/incr/update"}}
		v.HTTP.Jar = nil // it has cookies of its own
		seed := rand.Uint64()
		v.Run(ctx, 6, seed)
		if err := v.Check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if sum := v.Summary(); sum.Writes == 0 || sum.Silent > 0 {
			t.Errorf("%+v", sum)
		}
	})
}

func readsOnly(r *http.Request) middleware.Mode {
	if r.Method == http.MethodGet {
		return middleware.ReadOnly
	}
	return middleware.Exclusive
}

// A historian is the handler that the visitor's requests reach.
type historian struct {
	sessions *middleware.Sessions
	came     func() // is called for each request
}

func (h *historian) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.came()
	<-time.After(rand.N(2 * time.Millisecond)) // it works
	s := session.FromContext(r.Context())
	switch r.URL.Path {
	case "/reset":
		s.Clear()
		s.Set("since", time.Now())
	case "/login":
		s.Renew()
		s.Set("user", "ann")
	case "/logout":
		s.Destroy()
	default:
		n, err := h.counted(s, r)
		if err != nil {
			w.WriteHeader(middleware.Status(err))
			return
		}
		fmt.Fprintln(w, n)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// counted reads the number or adds 1 to it. If there is no stored session, counted adds 1 in the ordinary way, since
// the other ways need one.
func (h *historian) counted(s *session.Session, r *http.Request) (n int, err error) {
	ctx := r.Context()
	switch path := r.URL.Path; {
	case path == "/count":
	case s.IsNew() && path != "/count/again":
		return add(s), nil
	case path == "/incr/discard":
		s.Set("n", 1_000_000)
		s.Discard()
		return add(s), nil
	case path == "/incr/update":
		if err = s.Commit(ctx); err == nil {
			err = h.sessions.Update(ctx, s.ID(), func(s *session.Session) error { n = add(s); return nil })
		}
		return n, err
	case path == "/incr/reopen", path == "/count/again":
		if err = s.Commit(ctx); err == nil {
			err = s.Reopen(ctx)
		}
	}
	switch {
	case r.Method == http.MethodGet && errors.Is(err, store.ErrGone):
		return 0, nil // as a later request would read
	case err != nil:
		return 0, err
	}
	if n, _ = session.Get[int](s, "n"); r.Method == http.MethodPost {
		n = add(s)
	}
	return n, nil
}

// P14: In two processes and several sessions at once, users log in, renew their IDs, and list their sessions. They
// end one of their sessions, all others, or all. In between there are increments and reads. A request never sees a
// session alive that was ended before the request began, a list shows the sessions that are alive, and everything
// else is linearizable. A request is refused only if its session is ended under it.
func TestHistoriesOfUsers(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	for _, clients := range []int{1, 6} { // a single client never waits, so other commands are sent
		a := playUsers(t, store.Options{}, r.URL, r.URL)
		a.Sound = true
		runUsers(t, a, clients)
	}
}

// The same holds on a bad network. If the response to an end is lost, that end may have taken effect or not. Commands
// may arrive much too late.
func TestHistoriesOfUsersOverBadNetworks(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	for name, fault := range map[string]redistest.Fault{"replies are lost": redistest.DropReply, "commands never come": redistest.HangCommand} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := redistest.NewProxy(t, r), redistest.NewProxy(t, r)
			a := playUsers(t, store.Options{Lease: time.Second, Timeout: 200 * time.Millisecond}, one.URL, two.URL)
			for _, p := range []*redistest.Proxy{one, two} {
				p.Inject(func(redistest.Command) redistest.Fault {
					if rand.IntN(200) == 0 {
						return fault
					}
					return redistest.Pass
				})
			}
			runUsers(t, a, 6)
		})
	}
}

// playUsers serves the sessions of users in a process for each URL of Redis.
func playUsers(t *testing.T, o store.Options, urls ...string) *history.Account {
	t.Helper()
	var sites history.Sites
	var sessions *middleware.Sessions
	for _, url := range urls {
		st, err := store.Open(url, o)
		if err != nil {
			t.Fatal(err)
		}
		h := &clerk{}
		h.sessions, err = middleware.New(st, middleware.Options{
			Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: "sid"}, Mode: clerkMode,
			Device: func(r *http.Request) string { return r.URL.Query().Get("label") },
			Logger: new(logtest.Buffer).Logger(),
			OnError: func(w http.ResponseWriter, r *http.Request, err error) {
				w.Header().Set("X-User", *r.Context().Value(seenKey{}).(*string)) // also if the request was refused
				w.WriteHeader(middleware.Status(err))
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.inside = h.sessions.Handler(http.HandlerFunc(h.inSession))
		srv := httptest.NewServer(h)
		t.Cleanup(func() {
			srv.Close()
			_ = st.Close() // what matters has been checked
		})
		sites.Add(srv.URL)
		sessions = h.sessions
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &history.Account{
		HTTP:   &http.Client{Transport: transport, Timeout: time.Minute},
		Site:   sites.Any,
		Reads:  []string{"/count", "/look", "/look"},
		Writes: []string{"/incr", "/incr", "/incr/reopen", "/incr/optimistic"},
		ID: func(cookie string) string {
			_, value, _ := strings.Cut(cookie, "=")
			id, _ := sessions.ID(value)
			return id
		},
	}
}

// runUsers makes requests from some clients, and checks what they saw.
func runUsers(t *testing.T, a *history.Account, clients int) {
	t.Helper()
	ctx, enough := context.WithCancel(t.Context())
	defer enough()
	var requests atomic.Int32
	site := a.Site
	a.Site = func(x float64) string {
		if requests.Add(1) == 500 { // in a second, a busy machine may make too few
			enough()
		}
		return site(x)
	}
	seed := rand.Uint64()
	a.Run(ctx, clients, seed)
	if err := a.Check(); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	}
	answered := a.Answered()
	t.Logf("answered: %v; %d not", answered, a.Silent())
	if answered["login"] == 0 || answered["incr"] == 0 {
		t.Error("no login or no write was answered")
	}
}

// A clerk is the handler that the users' requests reach.
type clerk struct {
	sessions *middleware.Sessions
	inside   http.Handler
}

// seenKey is the context key of the user whose session the request's handler has seen.
type seenKey struct{}

func clerkMode(r *http.Request) middleware.Mode {
	switch r.URL.Path {
	case "/count":
		return middleware.ReadOnly
	case "/incr/optimistic":
		return middleware.Optimistic
	}
	return middleware.Exclusive
}

func (c *clerk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(context.WithValue(r.Context(), seenKey{}, new(string)))
	ctx, user, id := r.Context(), r.URL.Query().Get("user"), r.URL.Query().Get("id")
	var err error
	switch r.URL.Path {
	case "/end":
		err = c.sessions.End(ctx, id)
		if errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
	case "/end-all":
		var n int
		if n, err = c.sessions.EndAll(ctx, user, id); err == nil {
			fmt.Fprintln(w, n)
		}
	case "/list":
		var all []middleware.Info
		all, err = c.sessions.List(ctx, user)
		for _, info := range all {
			fmt.Fprintln(w, info.Device)
		}
	case "/incr/optimistic":
		r.Method = http.MethodGet // only a GET can be optimistic
		c.inside.ServeHTTP(w, r)
	default:
		c.inside.ServeHTTP(w, r)
	}
	if err != nil {
		w.WriteHeader(middleware.Status(err))
	}
}

func (c *clerk) inSession(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	if r.URL.Path == "/incr/reopen" && !s.IsNew() {
		err := s.Commit(r.Context())
		if runtime.Gosched(); err == nil {
			err = s.Reopen(r.Context())
		}
		if err != nil {
			w.WriteHeader(middleware.Status(err))
			return
		}
	}
	n, _ := session.Get[int](s, "n")
	*r.Context().Value(seenKey{}).(*string) = s.User()
	w.Header().Set("X-User", s.User())
	switch what := r.URL.Path[1:]; what {
	case "login":
		s.Login(r.URL.Query().Get("user"))
	case "renew":
		s.Renew()
	case "logout":
		s.Destroy()
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		if strings.HasPrefix(what, "incr") {
			n = add(s)
		}
	}
	work(r.Context())
	fmt.Fprintln(w, n)
}

// work lets other requests come while a session is held.
func work(ctx context.Context) {
	select {
	case <-time.After(rand.N(500 * time.Microsecond)):
	case <-ctx.Done():
	}
}

// crowd makes requests of one visitor, all at once and in two processes. In the end their session must have the
// number n.
func crowd(t *testing.T, r *redistest.Server, requests int, request func(i int) (method, path string), n string) {
	t.Helper()
	var sites []*site
	for range 2 {
		sites = append(sites, newSiteOn(t, store.New(r.Pool(t, 10), steady), middleware.Options{Mode: optimisticGets, LockWait: time.Minute}, app()))
	}
	v := newVisitor(t).everywhere()
	var all sync.WaitGroup
	for i := range requests {
		if i == 0 {
			v.post(sites[0].URL+"/add").want(t, 200, "1")
		}
		all.Go(func() {
			method, path := request(i)
			if a := v.send(t.Context(), method, sites[i%2].URL+path, nil); a.err != nil || a.StatusCode != 200 {
				t.Errorf("request %d: %v %d %s", i, a.err, a.StatusCode, a.body)
			}
		})
	}
	all.Wait()
	v.get(sites[0].URL+"/get").want(t, 200, n)
}

// P1: In two processes, 100 concurrent writes to one session are all kept.
func TestConcurrentWritesAllStay(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		crowd(t, r, 100, func(int) (method, path string) { return http.MethodPost, "/add" }, "101")
	})
}

// mixed are GETs, which are optimistic, and some POSTs.
func mixed(i int) (method, path string) {
	if i%6 == 0 {
		return http.MethodPost, "/add"
	}
	return http.MethodGet, "/add"
}

// P1: In two processes, 100 concurrent GETs that each add 1 are all kept, among POSTs that also add 1.
func TestConcurrentOptimisticWritesAllStay(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) { crowd(t, r, 120, mixed, "121") })
}
