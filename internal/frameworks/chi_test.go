package frameworks

import (
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/session"
	"github.com/go-chi/chi/v5"
)

func (s *shop) chi(around ...func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(around...)
	r.Get("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, greeting(session.FromContext(r.Context())))
	})
	r.Post("/login", func(w http.ResponseWriter, r *http.Request) {
		login(session.FromContext(r.Context()), r.FormValue("user"))
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	r.Post("/logout", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	r.Post("/add", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, add(session.FromContext(r.Context()), 1))
	})
	r.Get("/cart", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, inCart(session.FromContext(r.Context())))
	})
	r.Route("/account", func(r chi.Router) {
		r.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, ok := session.Get[string](session.FromContext(r.Context()), "user"); !ok {
					http.Error(w, "log in first", http.StatusUnauthorized)
					return
				}
				next.ServeHTTP(w, r)
			})
		})
		r.Get("/", func(w http.ResponseWriter, r *http.Request) {
			user, _ := session.Get[string](session.FromContext(r.Context()), "user")
			fmt.Fprint(w, "the account of ", user)
		})
	})
	page := func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, s.page(r, chi.URLParam(r, "item"))) }
	r.Get("/shop/{item}", page)
	r.With(s.sessions.Optimistic).Get("/its-mode/{item}", page)
	r.Get("/events", s.events)
	r.Get("/ws", s.websocket)
	r.Post("/fail", func(w http.ResponseWriter, r *http.Request) {
		add(session.FromContext(r.Context()), 100)
		http.Error(w, "a teapot", http.StatusTeapot)
	})
	for path, h := range s.wrong() {
		r.Post(path, h)
	}
	return r
}
