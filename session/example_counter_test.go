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

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// countVisit is a handler that counts the visits of each visitor.
func countVisit(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	visits, _ := session.Get[int](s, "visits") // 0 at the first visit
	s.Set("visits", visits+1)
	fmt.Fprintln(w, "visit", visits+1)
} // the session is saved before the response is sent

// A page counts the visits of each visitor.
func Example() {
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

	server := httptest.NewTLSServer(sessions.Handler(http.HandlerFunc(countVisit)))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie
	for range 3 {
		res, err := browser.Get(server.URL)
		if err != nil {
			log.Fatal(err)
		}
		io.Copy(os.Stdout, res.Body)
		res.Body.Close()
	}
	// Output:
	// visit 1
	// visit 2
	// visit 3
}
