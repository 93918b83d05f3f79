package sessiontest_test

import (
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// A value set after a Commit is lost, and the response is an error. Without ExpectLateChange that would fail the
// test.
func ExampleSite_ExpectLateChange() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{})
	ann := site.Client(func(s *session.Session) { s.Set("cart", []string{"tea"}) })
	site.Serve(site.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if err := s.Commit(r.Context()); err != nil {
			return
		}
		s.Set("flash", "ordered") // too late
	})))
	post := func(c *http.Client, path string) {
		res, err := c.Post(site.URL+path, "", nil)
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer res.Body.Close()
		fmt.Println(res.StatusCode)
	}

	site.ExpectLateChange()
	post(ann, "/order")
	// Output:
	// 500
}
