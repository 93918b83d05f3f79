package middleware_test

import (
	"context"
	"crypto/rand"
	"errors"
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

// A support page shows a session whose ID somebody has found in a log. To look at it does not count as use.
func ExampleSessions_Peek() {
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

	var id string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada") // who has shown the right password
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		id = session.FromContext(r.Context()).ID()
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

	show(browser.Post(server.URL+"/login", "", nil))
	show(browser.Get(server.URL))

	info, err := sessions.Peek(context.Background(), id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.User, "expires in", time.Until(info.Expires).Round(time.Minute))

	if err := sessions.End(context.Background(), id); err != nil {
		log.Fatal(err)
	}
	_, err = sessions.Peek(context.Background(), id)
	fmt.Println("ended:", errors.Is(err, store.ErrGone))
	// Output:
	// ada expires in 30m0s
	// ended: true
}
