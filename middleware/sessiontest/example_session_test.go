package sessiontest_test

import (
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// The ID shows whether a login has renewed the session, and IsNew whether a logout has ended it.
func ExampleSite_Session() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ann")
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
	})
	site.Serve(site.Sessions.Handler(mux))
	post := func(c *http.Client, path string) {
		res, err := c.Post(site.URL+path, "", nil)
		if err != nil {
			t.Fatalf("%v", err)
		}
		res.Body.Close()
	}

	ann := site.Client(func(s *session.Session) { s.Set("cart", []string{"tea"}) })
	before := site.Session(ann).ID()
	post(ann, "/login")
	fmt.Println("the login renews:", site.Session(ann).ID() != before, site.Session(ann).User())
	post(ann, "/logout")
	fmt.Println("the logout ends:", site.Session(ann).IsNew())
	// Output:
	// the login renews: true ann
	// the logout ends: true
}
