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

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A job runs without a request of its visitor. It has kept the ID of the session, and leaves a message in it.
func ExampleSessions_Update() {
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

	var id string // in the job
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada") // who has shown the right password
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		id = s.ID()
		message, _ := session.Pop[string](s, "message")
		fmt.Fprintf(w, "message: %q\n", message)
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

	shipped := func(s *session.Session) error {
		s.Set("message", "Your order is on its way.")
		return nil // an error would mean that nothing is saved
	}
	fmt.Println(sessions.Update(context.Background(), id, shipped))
	show(browser.Get(server.URL))
	show(browser.Get(server.URL))

	if err := sessions.End(context.Background(), id); err != nil {
		log.Fatal(err)
	}
	err = sessions.Update(context.Background(), id, shipped)
	fmt.Println("the visitor has logged out:", errors.Is(err, store.ErrGone))
	// Output:
	// message: ""
	// <nil>
	// message: "Your order is on its way."
	// message: ""
	// the visitor has logged out: true
}
