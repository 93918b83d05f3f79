package sessiontest_test

import (
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// The session was ended elsewhere, and the client still has its cookie: it is a guest now.
func ExampleSite_End() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{})
	site.Serve(site.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if session.FromContext(r.Context()).User() == "" {
			http.Error(w, "please log in", http.StatusUnauthorized)
		}
	})))
	ann := site.Client(func(s *session.Session) { s.Login("ann") })
	post := func(c *http.Client, path string) {
		res, err := c.Post(site.URL+path, "", nil)
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer res.Body.Close()
		fmt.Println(res.StatusCode)
	}

	post(ann, "/")
	site.End(ann)
	post(ann, "/")
	// Output:
	// 200
	// 401
}
