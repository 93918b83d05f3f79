package session_test

import (
	"context"
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

// logIn is the handler of a form with the fields user and password.
func logIn(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("password") != "open sesame" { // a real program compares a hash
		http.Error(w, "wrong password", http.StatusForbidden)
		return
	}
	session.FromContext(r.Context()).Login(r.PostFormValue("user"))
	fmt.Fprintln(w, "welcome")
}

// showWho is the handler of a page that knows its visitor.
func showWho(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	if s.User() == "" {
		fmt.Fprintln(w, "hello, whoever you are")
		return
	}
	fmt.Fprintf(w, "hello, %s\n", s.User())
}

// A login gives the session to a user. The session gets a new ID, so an ID that an attacker has planted in the
// browser before is worth nothing.
func ExampleSession_Login() {
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

	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", logIn)
	mux.HandleFunc("GET /", showWho)
	// Without CrossOriginProtection another site's form could log the visitor in as somebody else.
	server := httptest.NewTLSServer(http.NewCrossOriginProtection().Handler(sessions.Handler(mux)))
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
	show(browser.Get(server.URL))
	show(browser.PostForm(server.URL+"/login", url.Values{"user": {"ada"}, "password": {"abracadabra"}}))
	show(browser.PostForm(server.URL+"/login", url.Values{"user": {"ada"}, "password": {"open sesame"}}))
	show(browser.Get(server.URL))

	list, err := sessions.List(context.Background(), "ada") // of all of the user's devices
	fmt.Println(len(list), err)
	// Output:
	// hello, whoever you are
	// wrong password
	// welcome
	// hello, ada
	// 1 <nil>
}
