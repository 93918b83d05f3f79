package middleware_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A page asks again and again whether there is something new. These requests do not keep the visitor logged in.
func ExampleSessions_Passive() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{
		Keys: [][]byte{key},
		TTL:  50 * time.Millisecond, // so that the example is short; the default is half an hour
	})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada") // who has shown the right password
	})
	mux.Handle("GET /unread", sessions.Passive(sessions.ReadOnly(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if session.FromContext(r.Context()).User() == "" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		}))))
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie

	poll := func(res *http.Response, err error) (status int) {
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode
	}
	poll(browser.Post(server.URL+"/login", "", nil))
	for poll(browser.Get(server.URL+"/unread")) == http.StatusOK {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("logged out after a while, though the page is open")
	// Output:
	// logged out after a while, though the page is open
}
