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

// The default cookie needs HTTPS. The second one works over plain HTTP, and the third outlives the browser.
func ExampleOptions_cookie() {
	st, err := embedded.Open(store.Options{}) // in production: store.Open("redis://…", store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	key := make([]byte, 32)
	rand.Read(key) // a real program reads its key from its configuration

	for _, cookie := range []http.Cookie{
		{},
		{Name: "session"},
		{Name: "__Host-session", Secure: true, MaxAge: 24 * 60 * 60},
	} {
		sessions, err := middleware.New(st, middleware.Options{Keys: [][]byte{key}, Cookie: cookie})
		if err != nil {
			log.Fatal(err)
		}
		w := httptest.NewRecorder()
		sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("theme", "dark")
		})).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", nil))
		set := w.Result().Cookies()[0]
		fmt.Println(set.Name, "Secure:", set.Secure, "MaxAge:", set.MaxAge)
	}
	// Output:
	// __Host-session Secure: true MaxAge: 0
	// session Secure: false MaxAge: 0
	// __Host-session Secure: true MaxAge: 86400
}
