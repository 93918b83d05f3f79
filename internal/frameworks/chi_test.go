package frameworks

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
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
	r.Get("/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %d\n\n", add(session.FromContext(r.Context()), 1))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.more:
			fmt.Fprint(w, "data: more\n\n")
		case <-r.Context().Done():
		}
	})
	r.Get("/ws", func(w http.ResponseWriter, r *http.Request) {
		n := add(session.FromContext(r.Context()), 1)
		if c, err := websocket.Accept(w, r, nil); err == nil {
			converse(r.Context(), c, n)
		}
	})
	r.Group(func(r chi.Router) {
		r.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				add(session.FromContext(r.Context()), 100)
				next.ServeHTTP(w, r)
			})
		})
		r.Post("/fail", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "a teapot", http.StatusTeapot)
		})
		r.Post("/panic", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Half", r.FormValue("half"))
			if half := r.FormValue("half"); half != "" {
				fmt.Fprint(w, half)
			}
			panic("boom")
		})
		r.Post("/abort", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "half an answer")
			panic(http.ErrAbortHandler)
		})
		r.Post("/lose", func(w http.ResponseWriter, r *http.Request) {
			s.lose()
			fmt.Fprint(w, "all is well")
		})
		r.Post("/late", func(w http.ResponseWriter, r *http.Request) {
			session := session.FromContext(r.Context())
			_ = session.Commit(r.Context())
			session.Set("flash", ", that was late")
			fmt.Fprint(w, "all is well")
		})
	})
	return r
}

// In a group, only its routes have sessions.
func TestSessionsOfAGroup(t *testing.T) {
	t.Parallel()
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		r := chi.NewRouter()
		r.Group(func(r chi.Router) {
			r.Use(sessions.Handler)
			r.Post("/add", func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, add(session.FromContext(r.Context()), 1))
			})
		})
		r.Get("/healthz", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "well") })
		return r
	})
	v := newVisitor(t, s)
	v.post("/add").want(t, 200, "1")
	v.post("/add").want(t, 200, "2")
	s.redis.Stop(t)
	v.post("/add").want(t, 503, "*")
	v.get("/healthz").want(t, 200, "well")
}

// A request that chi's Timeout has given up is not saved.
func TestTimeoutAround(t *testing.T) {
	t.Parallel()
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		r := chi.NewRouter()
		r.Use(chimiddleware.Timeout(50*time.Millisecond), sessions.Handler)
		r.Post("/add", func(w http.ResponseWriter, r *http.Request) {
			n := add(session.FromContext(r.Context()), 1)
			if r.FormValue("slow") != "" {
				<-r.Context().Done()
			}
			fmt.Fprint(w, n)
		})
		return r
	})
	v := newVisitor(t, s)
	eventuallyAdds := func(want string) {
		t.Helper()
		for { // on a busy machine this takes long, too
			if a := v.post("/add"); a.StatusCode != 503 {
				a.want(t, 200, want)
				return
			}
		}
	}
	eventuallyAdds("1")
	v.post("/add", "slow=yes").want(t, 503, "*")
	eventuallyAdds("2")
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
