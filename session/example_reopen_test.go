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

// An upload takes long. Commit first releases the session, so that the visitor can go on meanwhile. Reopen gets the
// session back, with what other requests have saved by then.
func ExampleSession_Reopen() {
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

	var receive func() (name string)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /theme", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("theme", r.FormValue("name"))
		fmt.Fprintln(w, "theme saved")
	})
	mux.HandleFunc("POST /picture", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Set("uploads", 1)
		if err := s.Commit(r.Context()); err != nil {
			return // the response is that error, whatever is written here
		}
		name := receive() // slow
		if err := s.Reopen(r.Context()); err != nil {
			http.Error(w, "please send the picture again", middleware.Status(err))
			return
		}
		s.Set("picture", name)
		theme, _ := session.Get[string](s, "theme")
		fmt.Fprintf(w, "%s saved, theme %s\n", name, theme)
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
		defer res.Body.Close()
		io.Copy(os.Stdout, res.Body)
	}
	receive = func() string {
		post("/theme?name=dark") // in another tab
		return "cat.jpg"
	}
	post("/theme?name=light")
	post("/picture")
	// Output:
	// theme saved
	// theme saved
	// cat.jpg saved, theme dark
}
