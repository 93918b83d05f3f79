package session_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// In mode Lazy the session is opened when the handler asks for it: a request that does not ask for its session
// neither waits for it nor costs a round trip to Redis.
func ExampleStart() {
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

	price := func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("coupon") == "" {
			fmt.Fprintln(w, "10 €")
			return
		}
		s, err := session.Start(r.Context())
		if errors.Is(err, store.ErrTimeout) { // another request has held the session for LockWait
			http.Error(w, "please try again", http.StatusServiceUnavailable)
			return
		}
		if err != nil {
			http.Error(w, "no coupons today", middleware.Status(err))
			return
		}
		s.Set("coupon", r.FormValue("coupon"))
		fmt.Fprintln(w, "8 €")
	}
	server := httptest.NewTLSServer(sessions.Handler(sessions.Lazy(http.HandlerFunc(price))))
	defer server.Close()
	browser := server.Client()
	browser.Jar, _ = cookiejar.New(nil) // keeps the cookie

	for _, path := range []string{"/", "/?coupon=summer"} {
		res, err := browser.Get(server.URL + path)
		if err != nil {
			log.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Printf("%d cookies, %s", len(res.Cookies()), body)
	}
	// Output:
	// 0 cookies, 10 €
	// 1 cookies, 8 €
}
