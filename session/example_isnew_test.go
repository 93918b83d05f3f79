package session_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A page greets a visitor who comes for the first time. A session that stays empty is not stored, so the page must
// set something to know its visitor again.
func ExampleSession_IsNew() {
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

	greet := func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if s.IsNew() {
			s.Set("greeted", true)
			fmt.Fprintln(w, "welcome")
			return
		}
		fmt.Fprintln(w, "welcome back, this page remembers you for", time.Until(s.Expires()).Round(time.Minute))
	}
	server := httptest.NewTLSServer(sessions.Handler(http.HandlerFunc(greet)))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie
	for range 2 {
		res, err := browser.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		io.Copy(os.Stdout, res.Body)
		res.Body.Close()
	}
	// Output:
	// welcome
	// welcome back, this page remembers you for 30m0s
}
