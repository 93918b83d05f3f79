package middleware_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A user may be logged in on two devices. Another login is refused.
func ExampleOptions_maxSessions() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}, MaxSessions: 2, RefuseLogin: true})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada") // who has shown the right password
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user %q\n", session.FromContext(r.Context()).User())
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	for range 3 {
		jar, _ := cookiejar.New(nil) // another device
		browser := &http.Client{Transport: server.Client().Transport, Jar: jar}
		res, err := browser.Post(server.URL+"/login", "", nil)
		if err != nil {
			log.Fatal(err)
		}
		res.Body.Close()
		fmt.Println(res.Status)
		if res, err = browser.Get(server.URL); err != nil { // only a session that is used counts
			log.Fatal(err)
		}
		res.Body.Close()
	}
	// Output:
	// 200 OK
	// 200 OK
	// 403 Forbidden
}
