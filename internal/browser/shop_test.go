package browser

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// host is the shop's host. Chromium trusts localhost and its subdomains like https, so it sends Sec-Fetch
// headers that say what a request is for.
const host = "shop.localhost"

// A shop is an ordinary application with sessions.
type shop struct {
	*watch
	url    string // as visitors see it
	direct string // for programs that cannot resolve that name
	client *http.Client
	redis  *redistest.Server
	log    *logtest.Buffer

	sessions *middleware.Sessions

	charges atomic.Int32  // of the visitor's card
	work    time.Duration // how long a login takes
	logins  atomic.Int32  // that are at work
}

// An opening says in which unusual way a shop is opened.
type opening struct {
	tls         bool // with TLS, and with the default cookie
	unprotected bool // without protection against requests from other sites
	buffer      int
	redis       *redistest.Server         // that of another process of the shop; nil: its own
	options     func(*middleware.Options) // changes the options
}

func openShop(t *testing.T, o opening) *shop {
	t.Helper()
	redis := o.redis
	if redis == nil {
		redis = redistest.Embedded(t)
	}
	s := &shop{
		watch: newWatch(t),
		redis: redis,
		log:   &logtest.Buffer{},
	}
	options := middleware.Options{
		Keys:     [][]byte{bytes.Repeat([]byte("key "), 8)},
		LockWait: patience,
		Buffer:   o.buffer,
		Logger:   s.log.Logger(),
	}
	if !o.tls {
		options.Cookie.Name = "session"
	}
	if o.options != nil {
		o.options(&options)
	}
	var err error
	if s.sessions, err = middleware.New(store.New(redis.Pool(t, 8), store.Options{}), options); err != nil {
		t.Fatal(err)
	}
	handler := s.observe(s.sessions.Handler(s.pages()))
	if !o.unprotected {
		handler = http.NewCrossOriginProtection().Handler(handler)
	}
	server := serve(t, handler, o.tls, s.connection)
	s.url, s.direct, s.client = named(server), server.URL, server.Client()
	return s
}

// visit opens a shop in the first tab of a visitor.
func visit(t *testing.T, o opening) (s *shop, b *tab) {
	t.Helper()
	return visitIn(t, "chromium", o)
}

func visitIn(t *testing.T, browser string, o opening) (s *shop, b *tab) {
	t.Helper()
	s, b = openShop(t, o), newVisitorIn(t, browser)
	b.open(s.url)
	return s, b
}

// twoTabs opens a shop in two tabs of a visitor, and forgets the responses so far.
func twoTabs(t *testing.T, loggedIn bool) (s *shop, b, other *tab) {
	t.Helper()
	s, b = visit(t, opening{})
	if loggedIn {
		b.logIn()
	}
	other = b.another()
	other.open(s.url)
	s.forgetAnswers()
	return s, b, other
}

// logIn presses the button, and waits until the page says that ann is logged in.
func (b *tab) logIn() {
	b.t.Helper()
	b.press("#login")
	b.showsUser("ann")
}

// showsUser waits until the page says that user is logged in, or nobody if user is "".
func (b *tab) showsUser(user string) {
	b.t.Helper()
	b.shows(`body[data-user="` + user + `"]`)
}

// serve starts a server. It calls state, if there is one, as http.Server.ConnState.
func serve(t *testing.T, handler http.Handler, tls bool,
	state func(net.Conn, http.ConnState)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.Config.ConnState = state
	if tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

// named returns a server's URL with the name of the shop.
func named(server *httptest.Server) (url string) {
	return strings.Replace(server.URL, "127.0.0.1", host, 1)
}

// end ends a session from another process, as "log me out everywhere" does.
func (s *shop) end(t *testing.T, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.sessions.End(ctx, id); err != nil {
		t.Fatalf("ending session %s: %v", id, err)
	}
}

// idOf returns the public ID of the session from which the tab's page was made.
func idOf(b *tab) string {
	b.t.Helper()
	return js[string](b, `document.body.dataset.session`)
}
