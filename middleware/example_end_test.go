package middleware_test

import (
	"crypto/rand"
	"errors"
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

// A user has lost the phone, and ends its session from the laptop. A stream or websocket of the phone would end,
// too.
func ExampleSessions_End() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{
		Keys:   [][]byte{key},
		Device: func(r *http.Request) string { return r.FormValue("on") }, // usually made of r.UserAgent()
	})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Login("ada") // who has shown the right password
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "user %q\n", session.FromContext(r.Context()).User())
	})
	mux.HandleFunc("POST /lost", func(w http.ResponseWriter, r *http.Request) {
		list, err := sessions.List(r.Context(), session.FromContext(r.Context()).User()) // only the user's own
		for _, info := range list {
			if info.Device == r.FormValue("device") {
				err = errors.Join(err, sessions.End(r.Context(), info.ID))
			}
		}
		if err != nil {
			http.Error(w, "please try again", middleware.Status(err))
			return
		}
		fmt.Fprintln(w, "logged out")
	})
	server := httptest.NewTLSServer(sessions.Handler(mux))
	defer server.Close()
	newBrowser := func() *http.Client {
		jar, _ := cookiejar.New(nil)
		return &http.Client{Transport: server.Client().Transport, Jar: jar}
	}
	show := func(res *http.Response, err error) {
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		io.Copy(os.Stdout, res.Body)
	}

	laptop, phone := newBrowser(), newBrowser()
	show(laptop.Post(server.URL+"/login?on=laptop", "", nil))
	show(phone.Post(server.URL+"/login?on=phone", "", nil))
	show(phone.Get(server.URL))
	show(laptop.Post(server.URL+"/lost?device=phone", "", nil))
	show(phone.Get(server.URL))
	show(laptop.Get(server.URL))
	// Output:
	// user "ada"
	// logged out
	// user ""
	// user "ada"
}
