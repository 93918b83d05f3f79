package middleware_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A program has two kinds of sessions: visitors', and administrators' with a shorter timeout and a cookie of
// their own. Inside both, FromContext says which one is meant.
func ExampleSessions_FromContext() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration
	sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}, Cookie: http.Cookie{Name: "shop"}})
	if err != nil {
		log.Fatal(err)
	}
	admins, err := middleware.New(st, middleware.Options{
		Keys:   [][]byte{key},
		TTL:    5 * time.Minute,
		Cookie: http.Cookie{Name: "admin", Path: "/"},
	})
	if err != nil {
		log.Fatal(err)
	}

	edit := func(w http.ResponseWriter, r *http.Request) {
		visitor, admin := sessions.FromContext(r.Context()), admins.FromContext(r.Context())
		visitor.Set("theme", "dark")
		admin.Set("edited", 1)
		fmt.Println("the visitor's session lasts", time.Until(visitor.Expires()).Round(time.Minute))
		fmt.Println("the administrator's session lasts", time.Until(admin.Expires()).Round(time.Minute))
	}
	w := httptest.NewRecorder()
	sessions.Handler(admins.Handler(http.HandlerFunc(edit))).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
	for _, cookie := range w.Result().Cookies() {
		fmt.Println("cookie", cookie.Name)
	}
	// Unordered output:
	// the visitor's session lasts 30m0s
	// the administrator's session lasts 5m0s
	// cookie admin
	// cookie shop
}
