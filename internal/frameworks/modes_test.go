package frameworks

import (
	"net/http"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"
)

// A route has a mode of its own where Options.Mode returns Lazy: one that only reads does not
// wait for the request that holds the session, as the others do.
func TestModesOfRoutes(t *testing.T) {
	t.Parallel()
	lazy := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.Lazy }}
	for name, program := range map[string]func(holding, free chan struct{}) func(*middleware.Sessions) http.Handler{
		"chi":  chiWithModes,
		"echo": echoWithModes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holding, free := make(chan struct{}), make(chan struct{})
			s := newSite(t, lazy, program(holding, free))
			release := sync.OnceFunc(func() { close(free) })
			t.Cleanup(release) // or a failure would wait for the handler for ever
			v := newVisitor(t, s)
			v.post("/add").want(t, 200, "1")
			held := make(chan answer, 1)
			go func() { held <- v.post("/hold") }()
			<-holding
			v.get("/cart").want(t, 200, "1")
			added := make(chan answer, 1)
			go func() { added <- v.post("/add") }()
			v.get("/cart").want(t, 200, "1")
			release()
			(<-held).want(t, 200, "101")
			(<-added).want(t, 200, "102")
			v.get("/cart").want(t, 200, "102")
			v.get("/healthz").want(t, 200, "well")
		})
	}
}

func chiWithModes(holding, free chan struct{}) func(*middleware.Sessions) http.Handler {
	return func(sessions *middleware.Sessions) http.Handler {
		r := chi.NewRouter()
		r.Use(sessions.Handler)
		r.With(sessions.ReadOnly).Get("/cart", func(w http.ResponseWriter, r *http.Request) {
			reply(w, inCart(session.FromContext(r.Context())))
		})
		r.Group(func(r chi.Router) {
			r.Use(sessions.Exclusive)
			r.Post("/add", func(w http.ResponseWriter, r *http.Request) {
				reply(w, add(session.FromContext(r.Context()), 1))
			})
			r.Post("/hold", func(w http.ResponseWriter, r *http.Request) {
				n := add(session.FromContext(r.Context()), 100)
				close(holding)
				<-free
				reply(w, n)
			})
		})
		r.Get("/healthz", func(w http.ResponseWriter, r *http.Request) { reply(w, "well") })
		return r
	}
}

func echoWithModes(holding, free chan struct{}) func(*middleware.Sessions) http.Handler {
	return func(sessions *middleware.Sessions) http.Handler {
		e := echo.New()
		e.GET("/cart", func(c echo.Context) error {
			return c.JSON(http.StatusOK, inCart(session.FromContext(c.Request().Context())))
		}, echo.WrapMiddleware(sessions.ReadOnly))
		exclusive := echo.WrapMiddleware(sessions.Exclusive)
		e.POST("/add", func(c echo.Context) error {
			return c.JSON(http.StatusOK, add(session.FromContext(c.Request().Context()), 1))
		}, exclusive)
		e.POST("/hold", func(c echo.Context) error {
			n := add(session.FromContext(c.Request().Context()), 100)
			close(holding)
			<-free
			return c.JSON(http.StatusOK, n)
		}, exclusive)
		e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "well") })
		return sessions.Handler(e)
	}
}
