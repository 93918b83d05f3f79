package middleware_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A handler is slow, and another request of the same visitor waits for it.
func ExampleSessions_Requests() {
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

	paid := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cart/{item}", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("cart", r.PathValue("item"))
	})
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		<-paid // asks a bank, for example
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie
	post := func(path string) {
		res, err := browser.Post(server.URL+path, "", nil)
		if err != nil {
			log.Fatal(err)
		}
		res.Body.Close()
	}
	until := func(requests int) {
		for len(slices.Collect(sessions.Requests())) < requests {
			time.Sleep(time.Millisecond)
		}
	}

	post("/cart/tea")
	var posts sync.WaitGroup
	posts.Go(func() { post("/order") })
	until(1)
	posts.Go(func() { post("/cart/milk") })
	until(2)
	for r := range sessions.Requests() {
		fmt.Println(r.State, r.Label, "in the session", r.Session != "", "since", !r.Since.IsZero())
	}
	close(paid)
	posts.Wait()
	// Output:
	// holds POST /order in the session true since true
	// waits POST /cart/{item} in the session true since true
}
