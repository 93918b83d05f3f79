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

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// sorry responds to a request whose session could not be opened or saved. The error is in the log already.
func sorry(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(middleware.Status(err))
	fmt.Fprintln(w, "<h1>Please try again</h1>")
}

// Redis is unavailable, and the visitor sees the program's own page.
func ExampleOptions_onError_page() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}, OnError: sorry})
	if err != nil {
		log.Fatal(err)
	}

	visits := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		n, _ := session.Get[int](s, "n")
		s.Set("n", n+1)
		fmt.Fprintln(w, "visit", n+1)
	})
	server := httptest.NewTLSServer(sessions.Handler(visits))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie
	visit := func() {
		res, err := browser.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		fmt.Println(res.Status)
		io.Copy(os.Stdout, res.Body)
	}
	visit()
	st.Close() // from now on the store is as good as a Redis that is away
	visit()
	// Output:
	// 200 OK
	// visit 1
	// 503 Service Unavailable
	// <h1>Please try again</h1>
}
