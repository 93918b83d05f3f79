package frameworks

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
)

func (s *shop) echo(around ...echo.MiddlewareFunc) *echo.Echo {
	e := echo.New()
	e.Use(around...)
	e.GET("/", func(c echo.Context) error {
		return c.String(http.StatusOK, greeting(session.FromContext(c.Request().Context())))
	})
	e.POST("/login", func(c echo.Context) error {
		login(session.FromContext(c.Request().Context()), c.FormValue("user"))
		return c.Redirect(http.StatusSeeOther, "/")
	})
	e.POST("/logout", func(c echo.Context) error {
		session.FromContext(c.Request().Context()).Destroy()
		return c.Redirect(http.StatusSeeOther, "/")
	})
	e.POST("/add", func(c echo.Context) error {
		return c.JSON(http.StatusOK, add(session.FromContext(c.Request().Context()), 1))
	})
	e.GET("/cart", func(c echo.Context) error {
		return c.JSON(http.StatusOK, inCart(session.FromContext(c.Request().Context())))
	})
	account := e.Group("/account", func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			user, ok := session.Get[string](session.FromContext(c.Request().Context()), "user")
			if !ok {
				return echo.NewHTTPError(http.StatusUnauthorized, "log in first")
			}
			c.Set("user", user)
			return next(c)
		}
	})
	account.GET("/", func(c echo.Context) error {
		return c.String(http.StatusOK, fmt.Sprint("the account of ", c.Get("user")))
	})
	e.GET("/events", func(c echo.Context) error {
		w, n := c.Response(), add(session.FromContext(c.Request().Context()), 1)
		w.Header().Set(echo.HeaderContentType, "text/event-stream")
		fmt.Fprintf(w, "data: %d\n\n", n)
		w.Flush()
		select {
		case <-s.more:
			fmt.Fprint(w, "data: more\n\n")
		case <-c.Request().Context().Done():
		}
		return nil
	})
	e.GET("/ws", func(c echo.Context) error {
		n := add(session.FromContext(c.Request().Context()), 1)
		conn, err := websocket.Accept(c.Response(), c.Request(), nil)
		if err == nil {
			converse(c.Request().Context(), conn, n)
		}
		return nil
	})
	// Not a group without a path: its middleware would also run for every unknown page.
	wrong := func(path string, h echo.HandlerFunc) {
		e.POST(path, func(c echo.Context) error {
			add(session.FromContext(c.Request().Context()), 100)
			return h(c)
		})
	}
	wrong("/fail", func(c echo.Context) error {
		return echo.NewHTTPError(http.StatusTeapot, "a teapot")
	})
	wrong("/panic", func(c echo.Context) error {
		c.Response().Header().Set("X-Half", c.FormValue("half"))
		if half := c.FormValue("half"); half != "" {
			_ = c.String(http.StatusOK, half)
		}
		panic("boom")
	})
	wrong("/abort", func(c echo.Context) error {
		_ = c.String(http.StatusOK, "half an answer")
		panic(http.ErrAbortHandler)
	})
	wrong("/lose", func(c echo.Context) error {
		s.lose()
		return c.String(http.StatusOK, "all is well")
	})
	wrong("/late", func(c echo.Context) error {
		session := session.FromContext(c.Request().Context())
		_ = session.Commit(c.Request().Context())
		session.Set("flash", ", that was late")
		return c.String(http.StatusOK, "all is well")
	})
	return e
}

// As a middleware of a group, and with the hooks that run before and after an answer.
func TestEchosGroupAndHooks(t *testing.T) {
	t.Parallel()
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		e := echo.New()
		group := e.Group("/shop", echo.WrapMiddleware(sessions.Handler))
		group.POST("/add", func(c echo.Context) error {
			c.Response().Before(func() { c.Response().Header().Set("X-Before", "yes") })
			return c.JSON(http.StatusOK, add(session.FromContext(c.Request().Context()), 1))
		})
		e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "well") })
		return e
	})
	v := newVisitor(t, s)
	v.post("/shop/add").want(t, 200, "1")
	if a := v.post("/shop/add"); a.Header.Get("X-Before") != "yes" || a.body != "2\n" {
		t.Errorf("%q %v", a.body, a.Header)
	}
	s.redis.Stop(t)
	v.post("/shop/add").want(t, 503, "*")
	v.get("/healthz").want(t, 200, "well")
}

// Behind WrapMiddleware, a panic after something was written saves nothing, but echo takes the
// answer for begun and adds nothing to it. The README says so.
func TestEchosMiddlewareWhereAPanicComesLate(t *testing.T) {
	t.Parallel()
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		return new(shop).echo(echomiddleware.Recover(), echo.WrapMiddleware(sessions.Handler))
	})
	v := newVisitor(t, s)
	v.post("/add").want(t, 200, "1")
	v.post("/panic", "half=half an answer").want(t, 200, "")
	v.get("/cart").want(t, 200, "1")
}

// Around echo, its error handler may use the session like any handler. Behind WrapMiddleware it
// comes too late for that, which is logged. The README says so.
func TestEchosErrorHandlerAndTheSession(t *testing.T) {
	t.Parallel()
	apologizing := func(e *echo.Echo) *echo.Echo {
		e.HTTPErrorHandler = func(err error, c echo.Context) {
			session.FromContext(c.Request().Context()).Set("flash", ", sorry")
			_ = c.String(http.StatusTeapot, "an apology")
		}
		return e
	}
	around := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		return sessions.Handler(apologizing(new(shop).echo()))
	})
	v := newVisitor(t, around)
	v.post("/fail").want(t, 418, "an apology")
	v.get("/").want(t, 200, "hello , sorry")

	inside := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		return apologizing(new(shop).echo(echo.WrapMiddleware(sessions.Handler)))
	})
	v = newVisitor(t, inside)
	v.post("/fail").want(t, 418, "") // nothing more can be said of it: the session is saved
	v.get("/").want(t, 200, "hello")
	if !strings.Contains(inside.log.String(), "session changed after it was saved") {
		t.Errorf("the log says %s", inside.log)
	}
}
