package middleware_test

import (
	"log"
	"net/http"
	"strings"

	"github.com/a2139e8d/latchkey/middleware"
)

// Most routes need no mode of their own.
func Example_modes() {
	mux.Handle("GET /cart", showCart)   // Optimistic, by ByMethod
	mux.Handle("POST /cart", addToCart) // Exclusive, by ByMethod
	mux.Handle("GET /unread", sessions.Passive(unread))
	mux.Handle("GET /images/", sessions.None(images))
	handler := middleware.Recoverer(http.NewCrossOriginProtection().Handler(sessions.Handler(mux)))
	log.Fatal(http.ListenAndServe(":8080", handler))
}

// Behind a router that cannot be asked for its route, the path says which requests need no session.
func Example_modeByPath() {
	_ = middleware.Options{
		Keys: [][]byte{key},
		Mode: func(r *http.Request) middleware.Mode {
			if strings.HasPrefix(r.URL.Path, "/static/") {
				return middleware.None
			}
			return middleware.ByMethod(r)
		},
	}
}
