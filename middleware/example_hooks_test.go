package middleware_test

import (
	"context"
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

// An audit log has a line for each session that begins, gets another ID, or ends.
func ExampleHooks() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{
		Keys: [][]byte{key},
		Hooks: middleware.Hooks{
			Begin: func(ctx context.Context, id string) {
				fmt.Printf("begin: user %q\n", session.FromContext(ctx).User())
			},
			Renew: func(ctx context.Context, old, id string) {
				fmt.Printf("new ID: user %q\n", session.FromContext(ctx).User())
			},
			End: func(ctx context.Context, id string) {
				fmt.Printf("end: user %q\n", session.FromContext(ctx).User())
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("POST /cart", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("cart", []string{"tea"})
	})
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada") // who has shown the right password
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
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

	show(browser.Post(server.URL+"/cart", "", nil))
	show(browser.Post(server.URL+"/login", "", nil))
	show(browser.Post(server.URL+"/logout", "", nil))
	// Output:
	// begin: user ""
	// new ID: user "ada"
	// end: user "ada"
}
