package session_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A logout ends the session. Its ID is dead at once: a copy of the cookie opens nothing any more.
func ExampleSession_Destroy() {
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
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada")
		fmt.Fprint(w, "welcome")
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Destroy()
		fmt.Fprint(w, "goodbye")
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user %q", session.FromContext(r.Context()).User())
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie

	send := func(method, path string) {
		r, _ := http.NewRequest(method, server.URL+path, nil)
		res, err := browser.Do(r)
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		fmt.Println(method, path, string(body))
	}
	send("POST", "/login")
	send("GET", "/")
	home, _ := url.Parse(server.URL)
	stolen := browser.Jar.Cookies(home)

	send("POST", "/logout")
	fmt.Println(len(browser.Jar.Cookies(home)), "cookies are left")
	browser.Jar.SetCookies(home, []*http.Cookie{{
		Name: stolen[0].Name, Value: stolen[0].Value, Path: "/", Secure: true}})
	send("GET", "/")
	// Output:
	// POST /login welcome
	// GET / user "ada"
	// POST /logout goodbye
	// 0 cookies are left
	// GET / user ""
}
