package browser

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/session"
)

// pages are the pages of the shop. They do not know about the tests, except that the password check takes
// as long as the test wants.
func (s *shop) pages() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		sess := session.FromContext(r.Context())
		if _, ok := session.Get[string](sess, "token"); !ok { // the token of the form below
			sess.Set("token", rand.Text())
		}
		s.show(w, r, "")
	})
	mux.HandleFunc("GET /account/", func(w http.ResponseWriter, r *http.Request) { // reads only
		if control := r.FormValue("cache"); control != "" {
			w.Header().Set("Cache-Control", control)
		}
		s.show(w, r, "")
	})
	mux.HandleFunc("GET /with/{library}", func(w http.ResponseWriter, r *http.Request) { // reads only
		s.show(w, r, r.PathValue("library"))
	})
	mux.Handle("GET /npm/", http.StripPrefix("/npm/", http.FileServer(http.Dir("../../bin/npm"))))
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		user := r.FormValue("user")
		s.reached(r, "in the handler") // checks the password
		sess := session.FromContext(r.Context())
		sess.Login(user)
		if r.FormValue("remember") != "" {
			sess.Remember(30 * 24 * time.Hour)
		}
		sess.Set("flash", "Welcome!")
		if s.work > 0 {
			s.commitInOrder(r.Context(), sess)
		}
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		s.reached(r, "in the handler")
		session.FromContext(r.Context()).Destroy()
		http.Redirect(w, r, cmp.Or(r.FormValue("to"), "/"), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /logout-by-fetch", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("clear") != "no" {
			w.Header().Set("Clear-Site-Data", `"prefetchCache", "prerenderCache"`)
		}
		session.FromContext(r.Context()).Destroy()
	})
	mux.HandleFunc("POST /cart", func(w http.ResponseWriter, r *http.Request) {
		sess := session.FromContext(r.Context())
		n, _ := session.Get[int](sess, "cart")
		sess.Set("cart", n+1)
		if to := r.FormValue("to"); to != "" {
			http.Redirect(w, r, to, http.StatusSeeOther)
		} else {
			fmt.Fprint(w, n+1)
		}
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
	recipes(mux)
	s.streams(mux)
	return mux
}

// commitInOrder commits a login after its work. In a double click the browser closes the connection of the first
// login, and this one is committed first. On a busy machine it could be committed last. Then the browser would
// come back with the older session, and both would live.
func (s *shop) commitInOrder(ctx context.Context, sess *session.Session) {
	s.logins.Add(1)
	defer s.logins.Add(-1)
	time.Sleep(s.work)
	for s.logins.Load() > 1 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	_ = sess.Commit(context.WithoutCancel(ctx)) // as at the end of a handler. The response has the error
}

// buy has a common mistake: it sets a value after the session was saved.
func (s *shop) buy(w http.ResponseWriter, r *http.Request) {
	sess := session.FromContext(r.Context())
	if token, ok := session.Get[string](sess, "token"); !ok || token != r.FormValue("token") {
		http.Error(w, "this form is too old", http.StatusForbidden)
		return
	}
	if r.PathValue("how") == "with-a-login" {
		sess.Login("ann")
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
{{with .Library}}<script src="/npm/{{.}}"></script>{{end}}
<script>onpageshow = e => { document.body.dataset.kept = e.persisted }</script>
<body data-user="{{.User}}" data-session="{{.ID}}">
<p>{{.Flash}} This is the shop. In the cart: <span id="count">{{.Cart}}</span></p>
{{with .User}}<p id="secret">What only {{.}} may see.</p>{{end}}
<form method="post" action="/login">
	<input type="hidden" name="user" value="ann"><button id="login">Log in</button>
	<button id="login-for-long" name="remember" value="yes">Log in, and remember me</button>
</form>
<form method="post" action="/logout"><button id="logout" name="to" value="{{.Path}}">Log out</button></form>
<form method="post" action="/cart"><button id="add-by-form" name="to" value="{{.Path}}">+1</button></form>
<button id="add-by-htmx" hx-post="/cart" hx-target="#count">+1</button>
<button id="add-by-fetch" onclick="fetch('/cart', {method: 'POST'})
	.then(a => a.ok ? a.text() : a.status).then(t => { count.textContent = t })">+1</button>
<form method="post">
	<input type="hidden" name="token" value="{{.Token}}">
	<button id="buy" formaction="/buy/now">Buy</button>
	<button id="buy-page" formaction="/buy/page">Buy, and see a page</button>
	<button id="buy-flushed-page" formaction="/buy/flushed-page">Buy, and see a page at once</button>
	<button id="buy-with-a-login" formaction="/buy/with-a-login">Log in and buy</button>
</form>
<form method="post" action="/written"><button id="write">Write</button></form>
<a id="home" href="/">Home</a> <a id="account" href="/account/">Account</a> <a id="link" href="/written">Written</a>
`))

func (s *shop) show(w http.ResponseWriter, r *http.Request, library string) {
	sess := session.FromContext(r.Context())
	view := struct {
		User, ID, Path, Library, Token, Flash string
		Cart                                  int
	}{User: sess.User(), ID: sess.ID(), Path: r.URL.Path, Library: library}
	view.Token, _ = session.Get[string](sess, "token")
	view.Cart, _ = session.Get[int](sess, "cart")
	view.Flash, _ = session.Pop[string](sess, "flash")
	if err := page.Execute(w, view); err != nil {
		panic(err)
	}
}
