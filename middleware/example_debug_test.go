package middleware_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"sync"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// The page is on an address that only the operator reaches. A program asks for it as JSON.
func ExampleSessions_Debug() {
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
	debug := http.NewServeMux()
	debug.Handle("GET /debug/sessions", sessions.Debug())
	private := httptest.NewServer(debug) // in production: go http.ListenAndServe("127.0.0.1:6060", debug)
	defer private.Close()

	works, paid := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cart/{item}", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("cart", r.PathValue("item"))
	})
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		close(works)
		<-paid // asks a bank, for example
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie
	post := func(path string) {
		res, err := browser.Post(server.URL+path, "", nil)
		if err != nil {
			log.Fatal(err)
		}
		res.Body.Close()
	}

	post("/cart/tea")
	var posts sync.WaitGroup
	posts.Go(func() { post("/order") })
	<-works
	res, err := http.Get(private.URL + "/debug/sessions?format=json")
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	var now struct {
		Holds, Waits, Open int
		Sessions           []struct {
			Session  string
			Requests []struct {
				State, Label string
				Seconds      float64
			}
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&now); err != nil {
		log.Fatal(err)
	}
	fmt.Println("hold:", now.Holds, "wait:", now.Waits, "open:", now.Open)
	for _, s := range now.Sessions {
		for _, r := range s.Requests {
			fmt.Println(r.State, r.Label)
		}
	}
	close(paid)
	posts.Wait()
	// Output:
	// hold: 1 wait: 0 open: 0
	// holds POST /order
}
