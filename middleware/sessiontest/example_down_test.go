package sessiontest_test

import (
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// While Redis is unavailable nothing is ordered, and nothing is lost.
func ExampleSite_Down() {
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
		fmt.Println(res.StatusCode)
	}

	up := site.Down()
	post(ann, "/order")
	up()
	post(ann, "/order")
	// Output:
	// 503
	// 200
}
