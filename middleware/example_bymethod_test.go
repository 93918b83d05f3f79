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

// While a POST holds the session, a GET is answered at once, with what was saved last.
func ExampleByMethod() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
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

	var otherTab func()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		name, _ := session.Get[string](session.FromContext(r.Context()), "name")
		fmt.Fprintf(w, "the name is %q\n", name)
	})
	mux.HandleFunc("POST /name", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("name", r.FormValue("name"))
		if otherTab != nil {
			otherTab()
		}
		fmt.Fprintln(w, "saved")
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

	show(browser.Post(server.URL+"/name?name=Ada", "", nil))
	otherTab = func() { show(browser.Get(server.URL)) }
	show(browser.Post(server.URL+"/name?name=Grace", "", nil))
	show(browser.Get(server.URL))
	// Output:
	// saved
	// the name is "Ada"
	// saved
	// the name is "Grace"
}
