package middleware_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/store/embedded"
)

// A new key signs from now on, and the old key still verifies the cookies that it has signed. So a change of keys
// logs nobody out.
func ExampleOptions_keys() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	older, newer := make([]byte, 32), make([]byte, 32)
	rand.Read(older)
	rand.Read(newer)

	var cookies []*http.Cookie
	visitWith := func(keys ...[]byte) {
		sessions, err := middleware.New(st, middleware.Options{Keys: keys})
		if err != nil {
			log.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, cookie := range cookies {
			r.AddCookie(cookie)
		}
		w := httptest.NewRecorder()
		sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s := session.FromContext(r.Context())
			n, _ := session.Get[int](s, "visits")
			s.Set("visits", n+1)
			fmt.Println("visit", n+1)
		})).ServeHTTP(w, r)
		if set := w.Result().Cookies(); len(set) > 0 {
			cookies = set
		}
	}
	visitWith(older)
	visitWith(older, newer) // in all processes, before the next step
	visitWith(newer, older) // until Lifetime has passed
	visitWith(newer)        // too early: to this process the visitor is a stranger
	// Output:
	// visit 1
	// visit 2
	// visit 3
	// visit 1
}
