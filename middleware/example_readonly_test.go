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

// A route that only reads takes no lock: it is answered while another request holds the session. If it writes
// nevertheless, the response is an error, and nothing is saved.
func ExampleSessions_ReadOnly() {
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

	unread := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		n, _ := session.Get[int](s, "unread")
		if r.FormValue("reset") != "" {
			s.Set("unread", 0) // a mistake
		}
		fmt.Fprintln(w, n, "unread messages")
	})
	mux := http.NewServeMux()
	mux.Handle("GET /unread", sessions.ReadOnly(unread))
	var duringRead func()
	mux.HandleFunc("POST /read", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("unread", 3)
		if duringRead != nil {
			duringRead() // this request holds the session
		}
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

	show(browser.Post(server.URL+"/read", "", nil))
	duringRead = func() { show(browser.Get(server.URL + "/unread")) }
	show(browser.Post(server.URL+"/read", "", nil))
	res, err := browser.Get(server.URL + "/unread?reset=1")
	show(res, err)
	fmt.Println(res.Status)
	// Output:
	// 3 unread messages
	// The session could not be used. Nothing was saved.
	// 500 Internal Server Error
}
