package middleware_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"sync"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// While this GET runs, another request changes the session. So the GET's first run counts for nothing, and its
// handler runs again, on what is stored now.
func ExampleSessions_Optimistic() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}})
	if err != nil {
		log.Fatal(err)
	}

	var addTea func()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cart", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Get[[]string](s, "cart")
		s.Set("cart", append(cart, r.FormValue("item")))
	})
	mux.Handle("GET /cart", sessions.Optimistic(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Get[[]string](s, "cart")
		fmt.Println("the handler runs with", cart)
		addTea()
		s.Set("shown", len(cart)) // without this change there would be no second run
		fmt.Fprintln(w, "the visitor sees", cart)
	})))
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie
	show := func(res *http.Response, err error) {
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		io.Copy(os.Stdout, res.Body)
	}

	addTea = sync.OnceFunc(func() { show(browser.Post(server.URL+"/cart?item=tea", "", nil)) }) // in another tab
	show(browser.Post(server.URL+"/cart?item=milk", "", nil))
	show(browser.Get(server.URL + "/cart"))
	// Output:
	// the handler runs with [milk]
	// the handler runs with [milk tea]
	// the visitor sees [milk tea]
}
