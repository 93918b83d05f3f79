package sessiontest_test

import (
	"fmt"
	"io"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// The visitor comes back after lunch.
func ExampleSite_Expire() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{})
	site.Serve(site.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if _, ok := session.Pop[[]string](s, "cart"); !ok {
			http.Error(w, "the cart is empty", http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, "ordered")
	})))
	ann := site.Client(func(s *session.Session) { s.Set("cart", []string{"tea"}) })
	post := func(c *http.Client, path string) {
		res, err := c.Post(site.URL+path, "", nil)
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		fmt.Println(res.StatusCode, string(body))
	}

	site.Expire(ann)
	post(ann, "/order")
	// Output:
	// 400 the cart is empty
}
