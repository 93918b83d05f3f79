package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/middleware"
)

func ExampleBearer() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	fmt.Printf("%q\n", middleware.Bearer(r))

	r.Header.Set("Authorization", "Bearer abc.123")
	fmt.Printf("%q\n", middleware.Bearer(r))

	r.Header.Set("Authorization", "Basic abc.123")
	fmt.Printf("%q\n", middleware.Bearer(r))
	// Output:
	// ""
	// "abc.123"
	// ""
}
