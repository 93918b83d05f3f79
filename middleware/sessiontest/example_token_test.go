package sessiontest_test

import (
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// A program with Options.Token has no cookies: the test puts the token into the request itself.
func ExampleSite_Token() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{Token: middleware.Bearer})
	site.Serve(site.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("user", session.FromContext(r.Context()).User())
	})))
	ann := site.Client(func(s *session.Session) { s.Login("ann") })

	r, _ := http.NewRequest(http.MethodGet, site.URL, nil)
	r.Header.Set("Authorization", "Bearer "+site.Token(ann))
	res, err := ann.Do(r)
	if err != nil {
		t.Fatalf("%v", err)
	}
	res.Body.Close()
	// Output:
	// user ann
}
