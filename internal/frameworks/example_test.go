package frameworks

import (
	"log"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
)

// This is the code of the guide's section on frameworks, except for the code in its programs.

var (
	st                  *store.Store
	key                 []byte
	sessions            *middleware.Sessions
	showCart, addToCart http.HandlerFunc
)

func Example_chi() {
	r := chi.NewRouter()
	r.Use(chimiddleware.Logger, middleware.Recoverer, http.NewCrossOriginProtection().Handler)
	r.Group(func(r chi.Router) {
		r.Use(sessions.Handler, chimiddleware.Compress(5))
		r.Get("/cart", showCart)
	})
	log.Fatal(http.ListenAndServe(":8080", r))
}

func Example_chiModes() {
	lazy := func(*http.Request) middleware.Mode { return middleware.Lazy }
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}, Mode: lazy})
	if err != nil {
		log.Fatal(err)
	}
	r := chi.NewRouter()
	r.With(sessions.Optimistic).Get("/cart", showCart)
	r.With(sessions.Exclusive).Post("/cart", addToCart)
	handler := middleware.Recoverer(sessions.Handler(r))
	log.Fatal(http.ListenAndServe(":8080", handler))
}

func Example_echoMiddleware() {
	e := echo.New()
	e.Use(echomiddleware.Recover())
	e.Use(echo.WrapMiddleware(sessions.Handler))
}
