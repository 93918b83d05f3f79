package session_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// The ID may stand in logs and in jobs. It opens nothing in a browser: that takes the secret in the cookie, which the
// ID does not reveal.
func ExampleSession_ID() {
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

	var logged string
	login := func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Login("ada")
		if err := s.Commit(r.Context()); err != nil { // from here on the session has its new ID
			return
		}
		logged = s.ID()
	}
	server := httptest.NewTLSServer(sessions.Handler(http.HandlerFunc(login)))
	defer server.Close()
	res, err := server.Client().Post(server.URL, "", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()

	info, err := sessions.Peek(context.Background(), logged)
	fmt.Println(info.User, err)
	fmt.Println("the cookie holds it:", strings.Contains(res.Cookies()[0].Value, logged))
	// Output:
	// ada <nil>
	// the cookie holds it: false
}
