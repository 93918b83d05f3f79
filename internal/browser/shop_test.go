package browser

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// host is the shop's host. Chromium trusts localhost and its subdomains like https, so it sends Sec-Fetch
// headers that say what a request is for.
const host = "shop.localhost"

// A shop is an ordinary application with sessions.
type shop struct {
	*watch
	url    string // as its visitors see it
	direct string // for programs that do not know the name
	client *http.Client
	redis  *redistest.Server
	store  *store.Store
	terms  records.Terms
	log    *logtest.Buffer

	charges atomic.Int32 // of the visitor's card
}

// An opening says in which unusual way a shop is opened.
type opening struct {
	tls         bool // and with the default cookie
	unprotected bool // against requests from other sites
	buffer      int
}

func openShop(t *testing.T, o opening) *shop {
	t.Helper()
	redis := redistest.Embedded(t)
	s := &shop{
		watch: newWatch(t),
		redis: redis,
		store: store.New(redis.Pool(t, 8), store.Options{}),
		terms: records.Terms{LockWait: patience},
		log:   &logtest.Buffer{},
	}
	options := middleware.Options{
		Keys:     [][]byte{bytes.Repeat([]byte("k"), 32)},
		LockWait: s.terms.LockWait,
		Buffer:   o.buffer,
		Logger:   s.log.Logger(),
	}
	if !o.tls {
		options.Cookie.Name = "session"
	}
	sessions, err := middleware.New(s.store, options)
	if err != nil {
		t.Fatal(err)
	}
	handler := s.observe(sessions.Handler(s.pages()))
	if !o.unprotected {
		handler = http.NewCrossOriginProtection().Handler(handler)
	}
	server := serve(t, handler, o.tls, s.connection)
	s.url, s.direct, s.client = named(server), server.URL, server.Client()
	return s
}

// visit opens a shop in a visitor's first tab.
func visit(t *testing.T, o opening) (s *shop, b *tab) {
	t.Helper()
	s, b = openShop(t, o), newVisitor(t)
	b.open(s.url)
	return s, b
}

// twoTabs opens a shop in two tabs of a visitor, and forgets the responses.
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

// showsUser waits until the page says who is logged in; "": no user.
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

// pages are the pages of the shop. They do not know about the tests, except that the password check takes
// as long as the test wants.
func (s *shop) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		sess := session.FromContext(r.Context())
		if _, ok := session.Get[string](sess, "token"); !ok { // of the form below
			sess.Set("token", rand.Text())
		}
		s.show(w, sess)
	})
	mux.HandleFunc("GET /account/", func(w http.ResponseWriter, r *http.Request) {
		s.show(w, session.FromContext(r.Context())) // reads only
	})
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		user := r.FormValue("user")
		s.reached(r, "in the handler") // checks the password
		sess := session.FromContext(r.Context())
		sess.Renew()
		sess.Set("user", user)
		sess.Set("flash", "Welcome!")
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		s.reached(r, "in the handler")
		session.FromContext(r.Context()).Destroy()
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	mux.HandleFunc("POST /cart", func(w http.ResponseWriter, r *http.Request) {
		sess := session.FromContext(r.Context())
		n, _ := session.Get[int](sess, "cart")
		sess.Set("cart", n+1)
		fmt.Fprint(w, n+1)
	})
	mux.HandleFunc("/written", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("written", 1)
		fmt.Fprint(w, `<!DOCTYPE html><link rel="icon" href="data:,"><p id="written">Written.</p>`)
	})
	mux.HandleFunc("POST /buy/{how}", s.buy)
	mux.HandleFunc("GET /worker.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `onactivate = e => e.waitUntil(clients.claim());
			onfetch = e => e.respondWith(fetch(e.request))`)
	})
	return mux
}

// buy has a common mistake: it sets a value after the session was saved.
func (s *shop) buy(w http.ResponseWriter, r *http.Request) {
	sess := session.FromContext(r.Context())
	if token, ok := session.Get[string](sess, "token"); !ok || token != r.FormValue("token") {
		http.Error(w, "this form is too old", http.StatusForbidden)
		return
	}
	if r.PathValue("how") == "with-a-login" {
		sess.Renew()
		sess.Set("user", "ann")
	}
	sess.Set("cart", 0)
	if err := sess.Commit(r.Context()); err != nil {
		return
	}
	s.charges.Add(1)
	switch r.PathValue("how") {
	case "page", "flushed-page":
		fmt.Fprintf(w, "<p id=bought>Thank you.</p>%100s", "")
		if r.PathValue("how") == "flushed-page" {
			_ = http.NewResponseController(w).Flush()
		}
		sess.Set("flash", "ordered") // too late
		fmt.Fprint(w, "<p id=end>Good bye.</p>")
	default:
		sess.Set("flash", "ordered") // too late
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><title>Shop</title><link rel="icon" href="data:,">
<body data-user="{{.User}}" data-session="{{.ID}}">
<p>{{.Flash}} This is the shop. In the cart: {{.Cart}}</p>
<form method="post" action="/login">
	<input type="hidden" name="user" value="ann"><button id="login">Log in</button>
</form>
<form method="post" action="/logout"><button id="logout">Log out</button></form>
<form method="post">
	<input type="hidden" name="token" value="{{.Token}}">
	<button id="buy" formaction="/buy/now">Buy</button>
	<button id="buy-page" formaction="/buy/page">Buy, and see a page</button>
	<button id="buy-flushed-page" formaction="/buy/flushed-page">Buy, and see a page at once</button>
	<button id="buy-with-a-login" formaction="/buy/with-a-login">Log in and buy</button>
</form>
<form method="post" action="/written"><button id="write">Write</button></form>
<a id="home" href="/">Home</a> <a id="link" href="/written">Written</a>
`))

func (s *shop) show(w http.ResponseWriter, sess *session.Session) {
	var view struct {
		User, ID, Token, Flash string
		Cart                   int
	}
	view.ID = sess.ID()
	view.User, _ = session.Get[string](sess, "user")
	view.Token, _ = session.Get[string](sess, "token")
	view.Cart, _ = session.Get[int](sess, "cart")
	view.Flash, _ = session.Pop[string](sess, "flash")
	if err := page.Execute(w, view); err != nil {
		panic(err)
	}
}

// end ends a session from elsewhere, as another process does for "log me out everywhere".
func (s *shop) end(t *testing.T, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	hold, err := records.Of(s.store).Take(ctx, id, s.terms)
	if err == nil {
		err = hold.Destroy(ctx)
	}
	if err != nil {
		t.Fatalf("ending session %s: %v", id, err)
	}
}

// idOf returns the public ID of the session from which the tab's page was made.
func idOf(b *tab) string {
	b.t.Helper()
	return js[string](b, `document.body.dataset.session`)
}
