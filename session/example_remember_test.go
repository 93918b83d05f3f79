package session_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// logInForLong is the handler of a form with a box "remember me".
func logInForLong(w http.ResponseWriter, r *http.Request) {
	s := session.FromContext(r.Context())
	s.Login("ada")
	if r.PostFormValue("remember") != "" {
		s.Remember(30 * 24 * time.Hour)
	}
	fmt.Fprintln(w, "expires in", time.Until(s.Expires()).Round(time.Minute))
}

// A visitor who ticks "remember me" stays logged in for 30 days, even if the browser is closed.
func ExampleSession_Remember() {
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

	server := httptest.NewTLSServer(sessions.Handler(http.HandlerFunc(logInForLong)))
	defer server.Close()

	for _, form := range []url.Values{{}, {"remember": {"on"}}} {
		res, err := server.Client().PostForm(server.URL, form)
		if err != nil {
			log.Fatal(err)
		}
		io.Copy(os.Stdout, res.Body)
		res.Body.Close()
		cookie := res.Cookies()[0]
		kept := time.Duration(cookie.MaxAge) * time.Second // 0: until the browser is closed
		fmt.Println("the browser keeps", cookie.Name, "for", kept.Round(time.Minute))
	}
	// Output:
	// expires in 30m0s
	// the browser keeps __Host-session-login for 0s
	// expires in 720h0m0s
	// the browser keeps __Host-session-login for 720h0m0s
}
