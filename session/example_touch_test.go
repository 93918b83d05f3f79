package session_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
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

// An open stream does not count as use of its session, but what its visitor does should. So the handler calls
// Touch for each message, and learns from it if the session has ended.
func ExampleSession_Touch() {
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

	ids, messages := make(chan string, 1), make(chan string)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada")
	})
	mux.HandleFunc("GET /chat", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		http.NewResponseController(w).Flush() // opens the stream, and commits the session
		ids <- s.ID()
		for message := range messages {
			err := s.Touch(r.Context())
			if errors.Is(err, session.ErrEnded) {
				fmt.Fprintln(w, "logged out")
				return
			}
			fmt.Fprintln(w, message)
			http.NewResponseController(w).Flush()
		}
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie

	res, err := browser.Post(server.URL+"/login", "", nil)
	if err != nil {
		log.Fatal(err)
	}
	res.Body.Close()
	stream, err := browser.Get(server.URL + "/chat")
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	for _, message := range []string{"hello", "is anybody there?"} {
		messages <- message
		lines.Scan()
		fmt.Println(lines.Text())
	}
	if err := sessions.End(context.Background(), <-ids); err != nil { // in another browser
		log.Fatal(err)
	}
	messages <- "goodbye"
	lines.Scan()
	fmt.Println(lines.Text())
	// Output:
	// hello
	// is anybody there?
	// logged out
}
