package sessiontest_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// Another request has the session. The client's request waits for LockWait, and gives up.
func ExampleSite_Busy() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{LockWait: 20 * time.Millisecond})
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

	release := site.Busy(ann)
	post(ann, "/order")
	release()
	cart, _ := session.Get[[]string](site.Session(ann), "cart")
	fmt.Println("the cart still holds", cart)
	// Output:
	// 503
	// the cart still holds [tea]
}
