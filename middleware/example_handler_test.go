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
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// Ten requests of one visitor come at once, and each adds 1. The requests run one after another, in however
// many processes, so no increment is lost.
func ExampleSessions_Handler() {
	st, err := embedded.Open(store.Options{Timeout: time.Minute}) // in production: store.Open("redis://…", store.Options{})
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

	mux := http.NewServeMux()
	mux.HandleFunc("POST /add", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		n, _ := session.Get[int](s, "n")
		s.Set("n", n+1)
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		n, _ := session.Get[int](session.FromContext(r.Context()), "n")
		fmt.Fprintln(w, n)
	})
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

	show(browser.Post(server.URL+"/add", "", nil)) // begins the session
	var requests sync.WaitGroup
	for range 10 {
		requests.Go(func() { show(browser.Post(server.URL+"/add", "", nil)) })
	}
	requests.Wait()
	show(browser.Get(server.URL))
	// Output:
	// 11
}
