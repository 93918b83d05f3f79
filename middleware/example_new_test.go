package middleware_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// shop is the program: each visitor has a cart.
func shop() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cart", func(w http.ResponseWriter, r *http.Request) {
		cart, _ := session.Get[[]string](session.FromContext(r.Context()), "cart")
		fmt.Fprintln(w, len(cart), "in the cart:", cart)
	})
	mux.HandleFunc("POST /cart", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		cart, _ := session.Get[[]string](s, "cart")
		s.Set("cart", append(cart, r.PostFormValue("item")))
		http.Redirect(w, r, "/cart", http.StatusSeeOther)
	})
	return mux
}

// A program with sessions, and a browser that uses it.
func ExampleNew() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{
		Keys: [][]byte{key},
		Mode: middleware.ByMethod, // a GET waits for no other request
	})
	if err != nil {
		log.Fatal(err)
	}

	server := httptest.NewTLSServer(sessions.Handler(shop())) // http.ListenAndServe(":8080", sessions.Handler(shop()))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie
	for _, item := range []string{"tea", "milk"} {
		res, err := browser.PostForm(server.URL+"/cart", url.Values{"item": {item}})
		if err != nil {
			log.Fatal(err)
		}
		io.Copy(os.Stdout, res.Body)
		res.Body.Close()
	}
	// Output:
	// 1 in the cart: [tea]
	// 2 in the cart: [tea milk]
}
