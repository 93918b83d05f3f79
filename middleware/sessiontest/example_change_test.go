package sessiontest_test

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
)

// Another request changes the session while an optimistic GET runs. So the handler runs again, on what is stored
// then.
func ExampleSite_Change() {
	t := newT() // stands for the *testing.T of the test
	defer t.end()
	site := sessiontest.New(t, middleware.Options{Mode: middleware.ByMethod})
	ann := site.Client(func(s *session.Session) { s.Set("cart", []string{"tea"}) })
	addMilk := sync.OnceFunc(func() {
		site.Change(ann, func(s *session.Session) { s.Set("cart", []string{"tea", "milk"}) })
	})
	site.Serve(site.Sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Get[[]string](s, "cart")
		fmt.Println("the handler runs with", cart)
		addMilk()
		s.Set("seen", len(cart))
	})))

	res, err := ann.Get(site.URL)
	if err != nil {
		t.Fatalf("%v", err)
	}
	res.Body.Close()
	fmt.Println(session.Get[int](site.Session(ann), "seen"))
	// Output:
	// the handler runs with [tea]
	// the handler runs with [tea milk]
	// 2 true
}
