// Package sessiontest helps to test handlers that use sessions. It needs no Redis server: each test has its
// own Redis inside the test binary, which starts at once.
//
//	st := sessiontest.New(t, middleware.Options{})
//	st.Serve(routes(st.Sessions)) // as the program does it
//	ann := st.Client(func(s *session.Session) { s.Login("ann") })
//	res, err := ann.Get(st.URL + "/cart")
//
// The client is a browser that already has its session. The test can cause rare events at will: another
// request holds the session ([Site.Busy]) or changes it ([Site.Change]), its lock is lost ([Site.Lose]), the
// session was ended ([Site.End]) or has expired ([Site.Expire]), Redis is unavailable ([Site.Down]) or full
// ([Site.Full]).
//
// A handler that changes its session after it was saved fails the test: see
// [Site.ExpectLateChange].
//
// Any goroutine may call the functions, even while requests are under way. A function that fails ends the test with
// Fatalf, so in other goroutines of the test the rules of [testing.T.FailNow] apply.
package sessiontest

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// lease is short, since a request learns of the loss of its lock after a third of the lease. It is long
// enough for a machine that is busy with other tests.
const lease = 3 * time.Second

// A Site is a program with sessions for one test, with its own server and Redis. All of it is closed when the
// test ends.
type Site struct {
	// Sessions is for the program under test.
	Sessions *middleware.Sessions
	// URL is the site's address, without a slash at the end. It is https, so that Secure cookies
	// work; only the site's own clients trust it.
	URL string

	tb      testing.TB
	redis   *embedded
	store   *store.Store
	server  *httptest.Server
	handler atomic.Pointer[http.Handler]
	log     *record
	logger  *slog.Logger
	hidden  middleware.Options   // of hidden requests: see hiddenRequest
	cookies *middleware.Sessions // with the options of hidden requests: knows the cookies of clients
}

// New starts a site. o may be the program's Options: if there are no Keys, New makes some; a Domain of the
// Cookie is removed; and log lines go to the test's log as well. For tests of waiting, set a short LockWait.
func New(tb testing.TB, o middleware.Options) *Site {
	tb.Helper()
	redis, err := newEmbedded()
	if err != nil {
		tb.Fatalf("sessiontest: %v", err)
	}
	st := &Site{tb: tb, log: &record{tb: tb}, redis: redis}
	st.logger = slog.New(st.log.handler(o.Logger))
	tb.Cleanup(st.log.close)
	tb.Cleanup(st.redis.close)
	st.store = store.New(st.redis.pool(), store.Options{Lease: lease, Timeout: timeout})
	tb.Cleanup(func() { _ = st.store.Close() })

	o = st.prepared(o)
	st.hidden = o
	st.hidden.Mode = nil
	st.hidden.Token, st.hidden.Hooks, st.hidden.Observers = nil, middleware.Hooks{}, nil
	if o.Token != nil {
		st.hidden.Cookie.Secure = true // a name that is valid for tokens may need it
	}
	st.Sessions, st.cookies = st.sessions(o), st.sessions(st.hidden)

	st.server = httptest.NewUnstartedServer(http.HandlerFunc(st.serve))
	st.server.Config.ErrorLog = slog.NewLogLogger(st.logger.Handler(), slog.LevelError)
	st.server.StartTLS()
	tb.Cleanup(func() {
		st.server.CloseClientConnections() // Close alone waits for streams that the test has left open
		st.server.Close()
	})
	st.URL = st.server.URL
	return st
}

// New makes further Sessions on the site's store, for a program that has several, such as an API beside a website. o is as
// for the function New; if there are no Keys, they are those of the site. The functions that take a client are about the
// sessions of the site's own Sessions.
func (st *Site) New(o middleware.Options) *middleware.Sessions {
	st.tb.Helper()
	return st.sessions(st.prepared(o))
}

// prepared returns the program's options as a test's site needs them.
func (st *Site) prepared(o middleware.Options) middleware.Options {
	if o.Keys == nil {
		o.Keys = st.hidden.Keys
	}
	if o.Keys == nil {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		o.Keys = [][]byte{key}
	}
	o.Logger = st.logger
	o.Cookie.Domain = "" // a test's server has no domain
	return o
}

func (st *Site) sessions(o middleware.Options) *middleware.Sessions {
	st.tb.Helper()
	s, err := middleware.New(st.store, o)
	if err != nil {
		st.tb.Fatalf("sessiontest: %v", err)
	}
	return s
}

// Serve makes the site serve h from now on. Nothing is put around h, so that the test serves what the program
// serves: h must contain [middleware.Sessions.Handler] of the site's Sessions.
func (st *Site) Serve(h http.Handler) { st.handler.Store(&h) }

func (st *Site) serve(w http.ResponseWriter, r *http.Request) {
	h := st.handler.Load()
	if h == nil {
		st.tb.Errorf("sessiontest: a request came before Serve: %s %s", r.Method, r.URL.Path)
		http.Error(w, "sessiontest: nothing is served yet", http.StatusNotImplemented)
		return
	}
	(*h).ServeHTTP(w, r)
}

// Client returns a client with its own cookies. begin fills the client's session, as a login in the program
// does. If begin is nil, the client is a visitor without a session.
//
// The client does not follow redirects, so that a test sees each response; set CheckRedirect to nil to follow
// them. The client gives up after half a minute. For a websocket set its Timeout to 0: with a Timeout, the body of a 101
// response cannot be written to.
func (st *Site) Client(begin func(*session.Session)) *http.Client {
	st.tb.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		st.tb.Fatalf("sessiontest: %v", err)
	}
	if begin != nil {
		jar.SetCookies(st.address(), st.hiddenRequest("Client", nil, begin))
	}
	return &http.Client{
		Transport:     st.server.Client().Transport,
		Jar:           jar,
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// hiddenRequest makes a session, or changes the session of the cookies, by a request that the program does
// not see. It returns the cookies of the response. The program's modes and error pages do not apply.
func (st *Site) hiddenRequest(doing string, cookies []*http.Cookie, f func(*session.Session)) []*http.Cookie {
	st.tb.Helper()
	var failed error
	o := st.hidden
	o.OnError = func(_ http.ResponseWriter, _ *http.Request, err error) { failed = err }
	sessions := st.sessions(o)
	w := httptest.NewRecorder()
	fill := func(_ http.ResponseWriter, r *http.Request) { f(session.FromContext(r.Context())) }
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, st.URL, nil)
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	sessions.Handler(http.HandlerFunc(fill)).ServeHTTP(w, r)
	if failed != nil {
		st.tb.Fatalf("sessiontest: %s: the session could not be opened or saved: %v", doing, failed)
	}
	return w.Result().Cookies()
}

// address is URL, with the path of the cookie.
func (st *Site) address() *url.URL {
	u, err := url.Parse(st.URL + cmp.Or(st.hidden.Cookie.Path, "/"))
	if err != nil {
		st.tb.Fatalf("sessiontest: %v", err)
	}
	return u
}

// cookiesOf returns those of the client's cookies that may be its session's: the member's first.
func (st *Site) cookiesOf(c *http.Client) (found []*http.Cookie) {
	if c.Jar == nil {
		return nil
	}
	all := c.Jar.Cookies(st.address())
	for _, name := range []string{st.cookieName() + "-login", st.cookieName()} {
		for _, cookie := range all {
			if cookie.Name == name {
				found = append(found, cookie)
			}
		}
	}
	return found
}

// cookieName is the name of a guest's cookie.
func (st *Site) cookieName() string { return cmp.Or(st.hidden.Cookie.Name, "__Host-session") }
