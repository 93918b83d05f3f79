package middleware_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// An API has no cookies. Its login gives the client a token, which the client sends with each request.
func ExampleSessions_Token() {
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

	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Login("ada") // who has shown the right password
		if err := s.Commit(r.Context()); err != nil {
			return // the response is that error, whatever is written here
		}
		token, err := sessions.Token(r.Context())
		if err != nil {
			http.Error(w, "no token", middleware.Status(err))
			return
		}
		io.WriteString(w, token)
	})
	mux.HandleFunc("POST /notes", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		notes, _ := session.Get[int](s, "notes")
		s.Set("notes", notes+1)
		fmt.Fprint(w, s.User(), " has ", notes+1)
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()

	post := func(path, token string) (status, body string) {
		r, _ := http.NewRequest(http.MethodPost, server.URL+path, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := server.Client().Do(r)
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.Status, string(text)
	}
	_, token := post("/login", "")
	fmt.Println(post("/notes", token))
	fmt.Println(post("/notes", token))
	status, _ := post("/notes", "")
	fmt.Println(status)
	// Output:
	// 200 OK ada has 1
	// 200 OK ada has 2
	// 401 Unauthorized
}
