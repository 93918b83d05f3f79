package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/a2139e8d/latchkey/middleware"
)

// modeOf says how a request uses its session, for routers that do not know it.
func modeOf(r *http.Request) middleware.Mode {
	switch {
	case strings.HasPrefix(r.URL.Path, "/static/"):
		return middleware.None // no session at all
	case r.URL.Path == "/unread":
		return middleware.ReadOnly // a poll, which never writes
	default:
		return middleware.ByMethod(r)
	}
}

// A program chooses the mode of each request.
func ExampleMode() {
	_ = middleware.Options{Mode: modeOf} // Keys are needed, too

	for _, target := range []string{"GET /static/logo.svg", "GET /unread", "GET /cart", "POST /cart"} {
		method, path, _ := strings.Cut(target, " ")
		fmt.Println(target, "is", modeOf(httptest.NewRequest(method, path, nil)))
	}
	// Output:
	// GET /static/logo.svg is None
	// GET /unread is ReadOnly
	// GET /cart is Optimistic
	// POST /cart is Exclusive
}
