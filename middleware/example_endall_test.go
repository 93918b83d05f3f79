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

// After a new password, all other sessions of the user end in one step.
func ExampleSessions_EndAll() {
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
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada") // who has shown the right password
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user %q\n", session.FromContext(r.Context()).User())
	})
	mux.HandleFunc("POST /password", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		// Change the password first, so that nobody logs in with the old one after EndAll.
		ended, err := sessions.EndAll(r.Context(), s.User(), s.ID())
		if err != nil {
			http.Error(w, "changed, but you may still be logged in elsewhere", middleware.Status(err))
			return
		}
		s.Renew()
		fmt.Fprintln(w, "changed, and logged out on", ended, "other devices")
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	newBrowser := func() *http.Client {
		jar, _ := cookiejar.New(nil)
		return &http.Client{Transport: server.Client().Transport, Jar: jar}
	}
	show := func(res *http.Response, err error) {
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		io.Copy(os.Stdout, res.Body)
	}

	laptop, phone, cafe := newBrowser(), newBrowser(), newBrowser()
	for _, browser := range []*http.Client{laptop, phone, cafe} {
		show(browser.Post(server.URL+"/login", "", nil))
		show(browser.Get(server.URL))
	}
	show(laptop.Post(server.URL+"/password", "", nil))
	for _, browser := range []*http.Client{laptop, phone, cafe} {
		show(browser.Get(server.URL))
	}
	// Output:
	// user "ada"
	// user "ada"
	// user "ada"
	// changed, and logged out on 2 other devices
	// user "ada"
	// user ""
	// user ""
}
