package frameworks

import (
	"log"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
)

// The code of the guide's section on frameworks that does not stand in one of the programs.

var (
	sessions *middleware.Sessions
	showCart http.HandlerFunc
)

func Example_chi() {
	r := chi.NewRouter()
	r.Use(chimiddleware.Logger, middleware.Recoverer)
	r.Group(func(r chi.Router) {
		r.Use(sessions.Handler, chimiddleware.Compress(5))
		r.Get("/cart", showCart)
	})
	log.Fatal(http.ListenAndServe(":8080", r))
}

func Example_echoMiddleware() {
	e := echo.New()
	e.Use(echomiddleware.Recover())
	e.Use(echo.WrapMiddleware(sessions.Handler))
}
