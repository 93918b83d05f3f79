package frameworks

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
)

// In mode Optimistic a router runs a second time for the same request, if another has changed the
// session meanwhile. It finds the same route, with the same parameters. Where the sessions are inside
// a chi router, by Use, and the route is in a router below, it would not: see the guide.
func TestOptimisticRoutesAreFoundAgain(t *testing.T) {
	t.Parallel()
	gets := middleware.Options{Mode: func(r *http.Request) middleware.Mode {
		if r.Method == http.MethodGet {
			return middleware.Optimistic
		}
		return middleware.Exclusive
	}}
	lazy := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.Lazy }}
	for name, program := range map[string]struct {
		options middleware.Options
		of      func(s *middleware.Sessions, page func(*http.Request, string) int) http.Handler
	}{
		"chi, around": {gets, func(s *middleware.Sessions, page func(*http.Request, string) int) http.Handler {
			return s.Handler(chiWithPage(page))
		}},
		"chi, one route": {gets, func(s *middleware.Sessions, page func(*http.Request, string) int) http.Handler {
			return chiWithPage(page, s.Handler)
		}},
		"chi, its mode": {lazy, func(s *middleware.Sessions, page func(*http.Request, string) int) http.Handler {
			return s.Handler(chiWithPage(page, s.Optimistic))
		}},
		"echo": {gets, func(s *middleware.Sessions, page func(*http.Request, string) int) http.Handler {
			return s.Handler(echoWithPage(page))
		}},
		"echo, inside": {gets, func(s *middleware.Sessions, page func(*http.Request, string) int) http.Handler {
			return echoWithPage(page, echo.WrapMiddleware(s.Handler))
		}},
		"echo, its mode": {lazy, func(s *middleware.Sessions, page func(*http.Request, string) int) http.Handler {
			return s.Handler(echoWithPage(page, echo.WrapMiddleware(s.Optimistic)))
		}},
		"gin": {gets, func(s *middleware.Sessions, page func(*http.Request, string) int) http.Handler {
			g := gin.New()
			g.Group("/shop").GET("/:item", func(c *gin.Context) { c.JSON(http.StatusOK, page(c.Request, c.Param("item"))) })
			return s.Handler(g)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var v *visitor
			runs := 0
			page := func(r *http.Request, item string) int {
				if runs++; item != "tea" {
					t.Errorf("run %d has item %q", runs, item)
				}
				n := add(session.FromContext(r.Context()), 1)
				if runs == 2 {
					v.post("/another").want(t, 200, "2")
				}
				return n
			}
			s := newSite(t, program.options, func(sessions *middleware.Sessions) http.Handler {
				mux := http.NewServeMux()
				mux.Handle("/", program.of(sessions, page))
				mux.Handle("/another", sessions.Exclusive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					fmt.Fprint(w, add(session.FromContext(r.Context()), 1))
				})))
				return mux
			})
			v = newVisitor(t, s)
			v.get("/shop/tea").want(t, 200, "1")
			v.get("/shop/tea").want(t, 200, "3")
			if runs != 3 {
				t.Errorf("the handler ran %d times", runs)
			}
		})
	}
}

func chiWithPage(page func(*http.Request, string) int, use ...func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Route("/shop", func(r chi.Router) {
		r.With(use...).Get("/{item}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, page(r, chi.URLParam(r, "item"))) })
	})
	return r
}

func echoWithPage(page func(*http.Request, string) int, use ...echo.MiddlewareFunc) http.Handler {
	e := echo.New()
	e.Group("/shop").GET("/:item", func(c echo.Context) error {
		return c.JSON(http.StatusOK, page(c.Request(), c.Param("item")))
	}, use...)
	return e
}
