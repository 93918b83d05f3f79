package frameworks

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
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
	page := func(c echo.Context) error { return c.JSON(http.StatusOK, s.page(c.Request(), c.Param("item"))) }
	e.GET("/shop/:item", page)
	e.GET("/its-mode/:item", page, echo.WrapMiddleware(s.sessions.Optimistic))
	e.GET("/events", echo.WrapHandler(http.HandlerFunc(s.events)))
	e.GET("/ws", echo.WrapHandler(http.HandlerFunc(s.websocket)))
	e.POST("/fail", func(c echo.Context) error {
		add(session.FromContext(c.Request().Context()), 100)
		return echo.NewHTTPError(http.StatusTeapot, "a teapot")
	})
	for path, h := range s.wrong() {
		e.POST(path, echo.WrapHandler(h))
	}
	return e
}

// Behind WrapMiddleware, a panic after something was written saves nothing. But echo believes that the response
// has begun, and adds nothing to it. The guide says so.
func TestEchosMiddlewareWhereAPanicComesLate(t *testing.T) {
	t.Parallel()
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		return (&shop{sessions: sessions}).echo(echomiddleware.Recover(), echo.WrapMiddleware(sessions.Handler))
	})
	v := newVisitor(t, s)
	v.post("/add").want(t, 200, "1")
	v.post("/panic", "half=half an answer").want(t, 200, "")
	v.get("/cart").want(t, 200, "1")
}

// If the sessions are around echo, its error handler may use the session like any handler. Behind WrapMiddleware
// the error handler runs too late for that, which is logged. The guide says so.
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
		return sessions.Handler(apologizing((&shop{sessions: sessions}).echo()))
	})
	v := newVisitor(t, around)
	v.post("/fail").want(t, 418, "an apology")
	v.get("/").want(t, 200, "hello , sorry")

	inside := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		return apologizing((&shop{sessions: sessions}).echo(echo.WrapMiddleware(sessions.Handler)))
	})
	v = newVisitor(t, inside)
	v.post("/fail").want(t, 418, "") // the session is saved by then, so the response shows nothing
	v.get("/").want(t, 200, "hello")
	if !strings.Contains(inside.log.String(), "session changed after it was saved") {
		t.Errorf("the log says %s", inside.log)
	}
}
