package session_test

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

// A mail takes its time, and no longer needs the session. After Commit the visitor's other requests do not wait
// for the mail.
func ExampleSession_Commit() {
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

	var sendMail func(cart []string)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Get[[]string](s, "cart")
		s.Set("cart", append(cart, r.FormValue("item")))
	})
	mux.HandleFunc("GET /cart", func(w http.ResponseWriter, r *http.Request) {
		cart, _ := session.Get[[]string](session.FromContext(r.Context()), "cart")
		fmt.Fprintln(w, "cart:", cart)
	})
	mux.HandleFunc("POST /order", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Pop[[]string](s, "cart")
		if err := s.Commit(r.Context()); err != nil {
			return // the response is that error, whatever is written here
		}
		sendMail(cart)
		fmt.Fprintln(w, "ordered:", cart)
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
	sendMail = func([]string) {
		show(browser.Get(server.URL + "/cart")) // another tab, while the order is under way
	}
	show(browser.Post(server.URL+"/add?item=tea", "", nil))
	show(browser.Get(server.URL + "/cart"))
	show(browser.Post(server.URL+"/order", "", nil))
	// Output:
	// cart: [tea]
	// cart: []
	// ordered: [tea]
}
