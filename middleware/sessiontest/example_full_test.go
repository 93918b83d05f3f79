package sessiontest_test

import (
	"fmt"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// A full Redis does not store a change, and the visitor does not see a success.
func ExampleSite_Full() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{})
	site.Serve(shop(site.Sessions)) // see New
	ann := site.Client(func(s *session.Session) { s.Set("cart", []string{"tea"}) })
	post := func(c *http.Client, path string) {
		res, err := c.Post(site.URL+path, "", nil)
		if err != nil {
			t.Fatalf("%v", err)
		}
		defer res.Body.Close()
		fmt.Println(res.StatusCode)
	}

	free := site.Full()
	post(ann, "/cart?item=milk")
	free()
	post(ann, "/cart?item=milk")
	// Output:
	// 503
	// 200
}
