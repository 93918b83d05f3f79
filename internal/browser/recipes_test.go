package browser

import (
	"cmp"
	"html/template"
	"net/http"
	"strings"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// A page may send its forms by htmx, by Turbo, by a script or through a service worker. The recipes are all that a
// program needs for that.

// answerError is an Options.OnError. If a write in the background has crossed a login, whose cookie the browser
// has by now, it loads the page again.
func answerError(w http.ResponseWriter, r *http.Request, err error) {
	status := middleware.Status(err)
	switch html := strings.Contains(r.Header.Get("Accept"), "text/html"); {
	case status == http.StatusConflict && r.Header.Get("HX-Request") != "":
		w.Header().Set("HX-Refresh", "true")
	case status == http.StatusConflict && html: // Turbo
		http.Redirect(w, r, cmp.Or(r.Referer(), "/"), http.StatusSeeOther)
		return
	}
	http.Error(w, http.StatusText(status), status)
}

// membersOnly leads guests to the page with the login.
func membersOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, login := session.FromContext(r.Context()), home(r)
		switch {
		case s.User() != "":
			next(w, r)
		case r.Header.Get("HX-Request") != "": // htmx would put the login's page into this one
			s.Set("message", "Please log in.")
			w.Header().Set("HX-Redirect", login)
		default:
			s.Set("message", "Please log in.")
			http.Redirect(w, r, login, http.StatusSeeOther)
		}
	}
}

// sendingScript sends the page's forms. After a 409 it tries once more. It does not follow redirects: fetch would
// load the next page, and its message would be lost. It ignores a second click: the reload would drop the second
// response, which may be the one with the cookie.
const sendingScript = `
	onsubmit = async (e) => {
		e.preventDefault();
		e.submitter.disabled = true;
		const body = new URLSearchParams(new FormData(e.target));
		const send = () => fetch(e.target.action, {method: 'POST', body, redirect: 'manual'});
		const answer = await send();
		if (answer.status === 409) await send();
		location.reload();
	}`

// libraries are what the pages load, by the first part of their path.
var libraries = map[string]template.HTML{
	"plain":  "",
	"htmx":   `<script src="/npm/htmx.org-2.0.11.js"></script>`,
	"turbo":  `<script src="/npm/turbo-8.0.23.js" defer></script>`,
	"script": `<script>` + sendingScript + `</script>`,
	"worker": `<script>navigator.serviceWorker.register('/worker.js')</script>`,
}

// home is the path of the page with the library of a request's page.
func home(r *http.Request) string { return "/by/" + r.PathValue("library") + "/" }

// recipes are the pages that use a library.
func recipes(mux *http.ServeMux) {
	mux.HandleFunc("GET /by/{library}/{$}", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		view := struct {
			User, ID, Message, Library string
			Cart                       int
			Load                       template.HTML
		}{User: s.User(), ID: s.ID(), Library: r.PathValue("library"), Load: libraries[r.PathValue("library")]}
		view.Cart, _ = session.Get[int](s, "cart")
		view.Message, _ = session.Pop[string](s, "message")
		if err := forms.Execute(w, view); err != nil {
			panic(err)
		}
	})
	mux.HandleFunc("POST /by/{library}/login", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if r.FormValue("password") == "right" {
			s.Login("ann")
		} else {
			s.Set("message", "Wrong password.")
		}
		http.Redirect(w, r, home(r), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /by/{library}/add", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		n, _ := session.Get[int](s, "cart")
		s.Set("cart", n+1)
		http.Redirect(w, r, home(r), http.StatusSeeOther)
	})
	mux.HandleFunc("POST /by/{library}/order", membersOnly(func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("message", "Ordered.")
		http.Redirect(w, r, home(r), http.StatusSeeOther)
	}))
}

var forms = template.Must(template.New("forms").Parse(`<!DOCTYPE html>
<html lang="en"><title>Shop</title><link rel="icon" href="data:,">{{.Load}}
<body hx-boost="true">
<main data-user="{{.User}}" data-session="{{.ID}}"><p id="message">{{.Message}}</p><p id="count">{{.Cart}}</p></main>
<form method="post" action="/by/{{.Library}}/login">
	<input name="password" value="right"><button id="login">Log in</button>
</form>
<form method="post" action="/by/{{.Library}}/add"><button id="add">+1</button></form>
<form method="post" action="/by/{{.Library}}/order" hx-target="#message"><button id="order">Order</button></form>
`))
