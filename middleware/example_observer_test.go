package middleware_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// waits is an observer that reports requests that had to wait for another one for too long.
type waits struct{ longer time.Duration }

func (w waits) Observe(_ context.Context, e middleware.Event) {
	if r, ok := e.(*middleware.RequestEvent); ok && r.Behind != "" && r.Waited > w.longer {
		fmt.Printf("%s has waited behind %s, with %d in line before it\n", r.Label, r.Behind, r.Queue)
	}
}

// A handler is slow, and the observer says which request had to wait for it.
func ExampleObserver() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{
		Keys:      [][]byte{key},
		Observers: []middleware.Observer{waits{longer: 10 * time.Millisecond}},
	})
	if err != nil {
		log.Fatal(err)
	}

	works := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cart/{item}", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("cart", r.PathValue("item"))
	})
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		close(works)
		for len(slices.Collect(sessions.Requests())) < 2 { // until the other request waits
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond) // asks a bank, for example
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
	post("/cart/milk")
	posts.Wait()
	// Output:
	// POST /cart/{item} has waited behind POST /order, with 0 in line before it
}
