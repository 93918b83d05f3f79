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
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// This GET draws a ticket, so it must not run twice. Its route has the mode Exclusive, and the other routes have
// the mode of the options.
func ExampleSessions_Exclusive() {
	st, err := embedded.Open(store.Options{Timeout: time.Minute}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}, Mode: middleware.ByMethod})
	if err != nil {
		log.Fatal(err)
	}

	var drawn atomic.Int64
	draw := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		tickets, _ := session.Get[[]int64](s, "tickets")
		s.Set("tickets", append(tickets, drawn.Add(1)))
	})
	mux := http.NewServeMux()
	mux.Handle("GET /ticket", sessions.Exclusive(draw))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		tickets, _ := session.Get[[]int64](session.FromContext(r.Context()), "tickets")
		fmt.Fprintln(w, drawn.Load(), "were drawn, and the visitor has", len(tickets))
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

	show(browser.Get(server.URL + "/ticket"))
	var requests sync.WaitGroup
	for range 5 {
		requests.Go(func() { show(browser.Get(server.URL + "/ticket")) })
	}
	requests.Wait()
	show(browser.Get(server.URL))
	// Output:
	// 6 were drawn, and the visitor has 6
}
