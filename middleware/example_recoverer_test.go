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

// A handler panics halfway. The response is a 500, and nothing of the request is saved.
func ExampleRecoverer() {
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

	mux := http.NewServeMux()
	mux.HandleFunc("POST /pay", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Set("paid", true)
		if r.FormValue("card") == "" {
			panic("no card")
		}
		fmt.Fprintln(w, "thank you")
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		paid, _ := session.Get[bool](session.FromContext(r.Context()), "paid")
		fmt.Fprintln(w, "paid:", paid)
	})
	server := httptest.NewTLSServer(middleware.Recoverer(sessions.Handler(mux)))
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

	show(browser.Post(server.URL+"/pay", "", nil)) // the panic is logged with its stack
	show(browser.Get(server.URL))
	show(browser.Post(server.URL+"/pay?card=4711", "", nil))
	show(browser.Get(server.URL))
	// Output:
	// Internal Server Error
	// paid: false
	// thank you
	// paid: true
}
