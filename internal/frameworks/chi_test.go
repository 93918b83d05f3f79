package frameworks

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
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

// A mode is a function like sessions.Optimistic.
type mode = func(http.Handler) http.Handler

// chiLayouts are the ways to put the sessions into a router r that has other routers below it. below adds those
// routers, with their pages in a mode.
var chiLayouts = []struct {
	name  string
	modes func(*http.Request) middleware.Mode
	build func(r chi.Router, s *middleware.Sessions, below func(chi.Router, mode))
}{
	{"Use", middleware.ByMethod, func(r chi.Router, s *middleware.Sessions, below func(chi.Router, mode)) {
		r.Use(s.Handler)
		below(r, asOptions)
	}},
	{"Use in a router below", middleware.ByMethod, func(r chi.Router, s *middleware.Sessions, below func(chi.Router, mode)) {
		r.Route("/{shop}", func(r chi.Router) {
			r.Use(s.Handler)
			below(r, asOptions)
		})
	}},
	{"Use in a Group", middleware.ByMethod, func(r chi.Router, s *middleware.Sessions, below func(chi.Router, mode)) {
		r.Group(func(r chi.Router) {
			r.Use(s.Handler)
			below(r, asOptions)
		})
	}},
	{"With", middleware.ByMethod, func(r chi.Router, s *middleware.Sessions, below func(chi.Router, mode)) {
		r.Route("/{shop}", func(r chi.Router) { below(r.With(s.Handler), asOptions) })
	}},
	{"each page in its mode", lazy, func(r chi.Router, s *middleware.Sessions, below func(chi.Router, mode)) {
		r.Use(s.Handler)
		below(r, s.Optimistic)
	}},
}

func asOptions(next http.Handler) http.Handler { return next }

func lazy(*http.Request) middleware.Mode { return middleware.Lazy }

// P1: a second run finds its page in the routers below, wherever the sessions are. Both runs see the same pattern
// and parameters, and so does middleware around the sessions.
func TestChiFindsThePageAgain(t *testing.T) {
	t.Parallel()
	for _, layout := range chiLayouts {
		t.Run(layout.name, func(t *testing.T) {
			t.Parallel()
			var v *visitor
			var runs []string // what each run has seen of its route
			var logged string // what middleware around the sessions has seen
			page := func(w http.ResponseWriter, r *http.Request) {
				n := add(session.FromContext(r.Context()), 1)
				c := chi.RouteContext(r.Context())
				runs = append(runs, fmt.Sprint(c.RoutePattern(), c.URLParams, r.PathValue("item"), r.Pattern))
				if len(runs) == 1 {
					v.post("/another").want(t, 200, fmt.Sprint(n))
				}
				fmt.Fprint(w, chi.URLParam(r, "item"), " ", chi.URLParam(r, "size"))
			}
			s := newSite(t, middleware.Options{Mode: layout.modes}, func(sessions *middleware.Sessions) http.Handler {
				r := chi.NewRouter()
				r.Use(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						next.ServeHTTP(w, r)
						c := chi.RouteContext(r.Context())
						logged = fmt.Sprint(c.RoutePattern(), c.URLParams)
					})
				})
				layout.build(r, sessions, func(r chi.Router, in mode) {
					r.Route("/tea/{item}", func(r chi.Router) {
						r.With(in).Get("/", page)
						r.Route("/in", func(r chi.Router) { r.With(in).Get("/{size}", page) })
					})
					cups := chi.NewRouter()
					cups.With(in).Get("/{item}/{size}", page)
					r.Mount("/cups", cups)
					r.With(in).Get("/plain/{item}/*", page)
				})
				mux := http.NewServeMux()
				mux.Handle("/", r)
				mux.Handle("POST /another", sessions.Handler(sessions.Exclusive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, add(session.FromContext(r.Context()), 1))
				}))))
				return mux
			})
			v = newVisitor(t, s)
			v.post("/another").want(t, 200, "1")
			for path, want := range map[string]string{
				"/tea/green":          "green",
				"/tea/black/in/large": "black large",
				"/cups/blue/small":    "blue small",
				"/plain/jug/of/milk":  "jug",
			} {
				if layout.name == "Use in a router below" || layout.name == "With" {
					path = "/north" + path
				}
				runs = nil
				v.get(path).want(t, 200, want)
				if len(runs) != 2 || runs[0] != runs[1] || !strings.HasPrefix(runs[0], logged) {
					t.Errorf("%s: the runs have seen %q, and middleware around the sessions %q", path, runs, logged)
				}
			}
		})
	}
}
