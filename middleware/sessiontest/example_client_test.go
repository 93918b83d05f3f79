package sessiontest_test

import (
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// A client without a session is a visitor who comes for the first time. Another one is logged in already.
func ExampleSite_Client() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{})
	site.Serve(site.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("user %q\n", session.FromContext(r.Context()).User())
	})))

	stranger := site.Client(nil)
	ann := site.Client(func(s *session.Session) { s.Login("ann") })
	for _, c := range []*http.Client{stranger, ann} {
		res, err := c.Get(site.URL)
		if err != nil {
			t.Fatalf("%v", err)
		}
		res.Body.Close()
	}
	// Output:
	// user ""
	// user "ann"
}
