package frameworks

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
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

// A log around the sessions sees the answer that the client gets. One inside sees the handler's,
// even if an error has taken its place.
func TestALogBelongsAround(t *testing.T) {
	t.Parallel()
	statuses := make(chan int, 2)
	log := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			noting := chimiddleware.NewWrapResponseWriter(w, r.ProtoMajor)
			next.ServeHTTP(noting, r)
			if r.URL.Path == "/lose" {
				statuses <- noting.Status()
			}
		})
	}
	lost := &shop{}
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		return lost.chi(log, sessions.Handler, log)
	})
	lost.lose = func() { s.loseLocks(t) }
	v := newVisitor(t, s)
	v.post("/add").want(t, 200, "1")
	v.post("/lose").want(t, 503, "*")
	if inside, outside := <-statuses, <-statuses; inside != 200 || outside != 503 {
		t.Errorf("inside it sees %d, outside %d", inside, outside)
	}
}
