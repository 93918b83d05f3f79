package middleware_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A server of another kind, such as one of gRPC, gets a session's token in its own way.
func ExampleSessions_ID() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}, Token: middleware.Bearer})
	if err != nil {
		log.Fatal(err)
	}

	var token string
	login := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Login("ada")
		if s.Commit(r.Context()) == nil {
			token, _ = sessions.Token(r.Context())
		}
	})
	sessions.Handler(login).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil))

	call := func(token string) string { // of the other server
		id, ok := sessions.ID(token)
		if !ok {
			return "unauthenticated: not a token of ours"
		}
		info, err := sessions.Peek(context.Background(), id)
		if err != nil {
			return "unauthenticated: the session has ended"
		}
		return "hello " + info.User
	}
	fmt.Println(call(token))
	fmt.Println(call("abc.123"))
	// Output:
	// hello ada
	// unauthenticated: not a token of ours
}
