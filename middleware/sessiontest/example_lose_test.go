package sessiontest_test

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// The lock is lost while the handler runs, so the handler cannot save any more, and must not charge the card.
func ExampleSite_Lose() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{})
	ann := site.Client(func(s *session.Session) { s.Set("cart", []string{"tea"}) })
	site.Serve(site.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site.Lose(ann)
		s := session.FromContext(r.Context())
		s.Delete("cart")
		if err := s.Commit(r.Context()); errors.Is(err, store.ErrLost) {
			fmt.Println("the lock is lost")
			return
		}
		fmt.Println("the card is charged")
	})))
	post := func(c *http.Client, path string) {
		res, err := c.Post(site.URL+path, "", nil)
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer res.Body.Close()
		fmt.Println(res.StatusCode)
	}

	post(ann, "/order")
	// Output:
	// the lock is lost
	// 503
}
