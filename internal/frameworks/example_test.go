package frameworks

import (
	"log"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
)

// The code of the README's section on frameworks.

var sessions *middleware.Sessions

// recoverer answers a panic with 500. It stands around the sessions, since a panic that does
// not reach them does not keep them from saving.
func recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch err := recover(); err {
			case nil:
			case http.ErrAbortHandler:
				panic(err) // cuts the response off
			default:
				slog.ErrorContext(r.Context(), "panic", "error", err, "stack", string(debug.Stack()))
				http.Error(w, "Internal Server Error", http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func Example_chi() {
	r := chi.NewRouter()
	r.Use(chimiddleware.Recoverer)
	r.Use(sessions.Handler)
	r.Post("/cart", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		n, _ := session.Get[int](s, "items")
		s.Set("items", n+1)
		http.Redirect(w, r, "/cart", http.StatusSeeOther)
	})
	log.Fatal(http.ListenAndServe(":8080", r))
}

func Example_gin() {
	r := gin.New() // gin.Default would add a Recovery
	r.POST("/cart", func(c *gin.Context) {
		s := session.FromContext(c.Request.Context()) // c itself is a different context
		n, _ := session.Get[int](s, "items")
		s.Set("items", n+1)
		c.Redirect(http.StatusSeeOther, "/cart")
	})
	log.Fatal(http.ListenAndServe(":8080", recoverer(sessions.Handler(r))))
}

func Example_echo() {
	e := echo.New()
	e.POST("/cart", func(c echo.Context) error {
		s := session.FromContext(c.Request().Context())
		n, _ := session.Get[int](s, "items")
		s.Set("items", n+1)
		return c.Redirect(http.StatusSeeOther, "/cart")
	})
	log.Fatal(http.ListenAndServe(":8080", recoverer(sessions.Handler(e))))
}

func Example_echoMiddleware() {
	e := echo.New()
	e.Use(echomiddleware.Recover())
	e.Use(echo.WrapMiddleware(sessions.Handler))
}
