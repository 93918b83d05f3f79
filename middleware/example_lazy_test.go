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

// Most requests for this page need no session. In mode Lazy a request that does not call session.Start neither
// waits for the session nor costs a round trip to Redis.
func ExampleSessions_Lazy() {
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

	article := sessions.Lazy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("bookmark") == "" {
			fmt.Fprintln(w, "an article")
			return
		}
		s, err := session.Start(r.Context())
		if err != nil {
			http.Error(w, "please try again", middleware.Status(err))
			return
		}
		bookmarks, _ := session.Get[int](s, "bookmarks")
		s.Set("bookmarks", bookmarks+1)
		fmt.Fprintln(w, bookmarks+1, "bookmarks")
	}))
	server := httptest.NewTLSServer(sessions.Handler(article))
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

	show(browser.Get(server.URL))
	show(browser.Get(server.URL + "/?bookmark=1"))
	show(browser.Get(server.URL + "/?bookmark=1"))
	// Output:
	// an article
	// 1 bookmarks
	// 2 bookmarks
}
