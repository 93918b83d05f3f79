package middleware_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/memnet"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = bytes.Repeat([]byte("key "), 8)

// steady are options by which no lease ends, no command times out and no connection is probed,
// however busy the machine is.
var steady = store.Options{Lease: 30 * time.Second, Timeout: 20 * time.Second}

// A site is a program with sessions: one process of possibly several on the same
// Redis.
type site struct {
	*httptest.Server
	log      *logtest.Buffer
	sessions *middleware.Sessions
}

// newSite serves mux with sessions on the Redis of pool. o may leave out Keys
// and Cookie.
func newSite(t *testing.T, pool *redis.Pool, o middleware.Options, mux http.Handler) *site {
	t.Helper()
	return newSiteOn(t, store.New(pool, steady), o, mux)
}

func newSiteOn(t *testing.T, st *store.Store, o middleware.Options, mux http.Handler) *site {
	t.Helper()
	log := &logtest.Buffer{}
	if o.Keys == nil {
		o.Keys = [][]byte{testKey}
	}
	if o.Cookie.Name == "" {
		o.Cookie.Name = "sid" // over plain HTTP a Secure cookie would not come back
	}
	o.Logger = log.Logger()
	s, err := middleware.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(s.Handler(mux))
	srv.Listener.Close()
	srv.Listener = memnet.Listen("")
	srv.Config.ErrorLog = slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug)
	srv.Start()
	t.Cleanup(srv.Close)
	return &site{Server: srv, log: log, sessions: s}
}

// app is what most tests serve: counters and the life of a session.
func app() *http.ServeMux {
	mux := http.NewServeMux()
	handle(mux, "/add", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, add(s)) })
	handle(mux, "/get", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
		n, _ := session.Get[int](s, "n")
		fmt.Fprint(w, n)
	})
	handle(mux, "/set/{key}", func(s *session.Session, _ http.ResponseWriter, r *http.Request) { s.Set(r.PathValue("key"), 1) })
	handle(mux, "/len", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.Len()) })
	handle(mux, "/id", func(s *session.Session, w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.ID()) })
	handle(mux, "/login", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
		s.Renew()
		s.Set("user", "ann")
	})
	handle(mux, "/logout", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Destroy() })
	mux.HandleFunc("/nothing", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/hold", func(_ http.ResponseWriter, r *http.Request) { waitUntilFree(r) })
	handle(mux, "/pause", func(s *session.Session, w http.ResponseWriter, r *http.Request) {
		waitUntilFree(r)
		s.Set("n", 500)
		fmt.Fprint(w, "stored")
	})
	return mux
}

// held are the two channels that a visitor and a handler that waits have in common.
type held struct{ begun, free chan struct{} }

var (
	helds   atomic.Int32
	allHeld sync.Map // by the number in the request
)

func waitUntilFree(r *http.Request) {
	if h, ok := allHeld.Load(r.URL.Query().Get("held")); ok {
		close(h.(held).begun)
		<-h.(held).free
	}
}

// keysOf returns the keys of the session's record and of its lock.
func keysOf(id string) (record, lock string) {
	record = "latchkey:{" + id + "}"
	if tag, rest, ofUser := strings.Cut(id, "."); ofUser {
		record = "latchkey:{" + tag + "}:" + rest
	}
	return record, record + ".lock"
}

// around serves handlers that are around the sessions, which newSite cannot do. newSite's own sessions have mode
// None.
func around(t *testing.T, r *redistest.Server, o middleware.Options, wrap func(sessions func(http.Handler) http.Handler) http.Handler) *site {
	t.Helper()
	o.Keys, o.Cookie.Name = [][]byte{testKey}, "sid"
	o.Logger = slog.New(slog.DiscardHandler)
	sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), o)
	must(t, err)
	none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
	return newSite(t, r.Pool(t, 1), none, wrap(sessions.Handler))
}

// inFakeTime runs f as a subtest, in fake time, with a Redis of its own.
func inFakeTime(t *testing.T, name string, f func(t *testing.T, r *redistest.Server)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		redistest.InFakeTime(t, f)
	})
}

// begun serves mux, and returns a visitor whose session has n = 1.
func begun(t *testing.T, r *redistest.Server, o middleware.Options, mux http.Handler) (*site, *visitor) {
	t.Helper()
	s := newSite(t, r.Pool(t, 4), o, mux)
	return s, s.visitor(t)
}

// visitor returns a visitor whose session has n = 1.
func (s *site) visitor(t *testing.T) *visitor {
	t.Helper()
	v := newVisitor(t)
	v.get(s.URL+"/add").want(t, 200, "1")
	return v
}

// begunWith is begun with app and one more route.
func begunWith(t *testing.T, r *redistest.Server, o middleware.Options, path string,
	h func(s *session.Session, w http.ResponseWriter, req *http.Request)) (*site, *visitor) {
	t.Helper()
	mux := app()
	handle(mux, path, h)
	return begun(t, r, o, mux)
}

// siteWith serves app and one more route.
func siteWith(t *testing.T, r *redistest.Server, o middleware.Options, path string,
	h func(s *session.Session, w http.ResponseWriter, req *http.Request)) *site {
	t.Helper()
	mux := app()
	handle(mux, path, h)
	return newSite(t, r.Pool(t, 4), o, mux)
}

// handle adds a handler that uses the session.
func handle(mux *http.ServeMux, path string, h func(s *session.Session, w http.ResponseWriter, req *http.Request)) {
	mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) { h(session.FromContext(req.Context()), w, req) })
}

// inBubble runs the test in fake time, with a Redis of its own, beside other tests.
func inBubble(t *testing.T, f func(t *testing.T, r *redistest.Server)) {
	t.Helper()
	t.Parallel()
	redistest.InFakeTime(t, f)
}

// onEach runs the test in fake time and, beside it, on a real Redis.
func onEach(t *testing.T, f func(t *testing.T, r *redistest.Server)) {
	t.Helper()
	t.Parallel()
	redistest.Each(t, f)
}

// welcoming is app, with /user, which says who is logged in.
func welcoming() *http.ServeMux {
	mux := app()
	handle(mux, "/user", func(s *session.Session, w http.ResponseWriter, _ *http.Request) {
		user, _ := session.Get[string](s, "user")
		fmt.Fprint(w, user)
	})
	return mux
}

// add does what app's /add does, for handlers that do more.
func add(s *session.Session) int {
	n, _ := session.Get[int](s, "n")
	s.Set("n", n+1)
	return n + 1
}

// must reports an error that the test does not expect.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// newSessions returns sessions whose cookie is called sid.
func newSessions(t *testing.T, r *redistest.Server, o middleware.Options) *middleware.Sessions {
	t.Helper()
	o.Keys, o.Cookie.Name = [][]byte{testKey}, "sid"
	s, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), o)
	must(t, err)
	return s
}

func byPath(modes map[string]middleware.Mode) func(*http.Request) middleware.Mode {
	return func(r *http.Request) middleware.Mode { return modes[r.URL.Path] }
}

// as returns the request as if it were for another path.
func as(r *http.Request, path string) *http.Request {
	r = r.Clone(r.Context())
	r.URL.Path = path
	return r
}

// loseLock makes the commit of the running request fail, as after a pause that
// outlasted the lease.
func loseLock(t *testing.T, r *redistest.Server, req *http.Request) {
	_, lock := keysOf(session.FromContext(req.Context()).ID())
	r.Do(t, "DEL", lock)
}

func recordOf(id string) string {
	record, _ := keysOf(id)
	return record
}

// serveOnce returns a handler's response to a request without a cookie.
func serveOnce(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	return w
}

// recoverer is a framework's recovery, inside the sessions.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				http.Error(w, fmt.Sprint(p), http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// count returns the cookie and the ID of a new session with n in it.
func (s *site) count(t *testing.T, n int) (*http.Cookie, string) {
	t.Helper()
	v := newVisitor(t)
	for i := range n {
		v.get(s.URL+"/add").want(t, 200, fmt.Sprint(i+1))
	}
	return v.cookie(s), v.get(s.URL + "/id").body
}

// end ends the session of a cookie, and leaves a tombstone or nothing at all.
func (s *site) end(t *testing.T, r *redistest.Server, c *http.Cookie, tombstone bool) {
	t.Helper()
	id := with(t, c).get(s.URL + "/id").body
	with(t, c).get(s.URL+"/logout").want(t, 200, "")
	if !tombstone {
		r.Do(t, "DEL", recordOf(id))
	}
}

// begins begins a session that has n = 1, and returns its ID.
func (s *site) begins(t *testing.T) (v *visitor, id string) {
	t.Helper()
	v = newVisitor(t).everywhere()
	v.get(s.URL+"/add").want(t, 200, "1")
	return v, v.get(s.URL + "/id").body
}
