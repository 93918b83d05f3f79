package session_test

import (
	"context"
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

// An administrator confirms the password, and may do more from then on. Renew gives the session a new ID, so
// whoever knows the old one does not get these rights.
func ExampleSession_Renew() {
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

	var ids []string
	mux := http.NewServeMux()
	mux.HandleFunc("POST /confirm", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Set("may delete", true)
		s.Renew()
		fmt.Fprintln(w, "thank you")
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		s.Set("visited", true)
		ids = append(ids, s.ID())
		may, _ := session.Get[bool](s, "may delete")
		fmt.Fprintln(w, "may delete:", may)
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
	show(browser.Get(server.URL))
	show(browser.Get(server.URL))
	show(browser.Post(server.URL+"/confirm", "", nil))
	show(browser.Get(server.URL))

	fmt.Println("the same ID at the second visit:", ids[0] == ids[1])
	fmt.Println("the same ID after Renew:", ids[1] == ids[2])
	_, err = sessions.Peek(context.Background(), ids[1])
	fmt.Println("the old ID is dead:", errors.Is(err, store.ErrGone))
	// Output:
	// may delete: false
	// may delete: false
	// thank you
	// may delete: true
	// the same ID at the second visit: true
	// the same ID after Renew: false
	// the old ID is dead: true
}
