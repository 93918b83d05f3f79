package session_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/session"
)

// membersOnly is a middleware of the application's own. It stands inside Sessions.Handler.
func membersOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if session.FromContext(r.Context()).User() == "" {
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Some pages are for those who have logged in.
func ExampleSession_User() {
	account := membersOnly(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "your account")
	}))

	var guest, ada session.Session // a handler's test needs no store
	ada.Login("ada")
	for _, s := range []*session.Session{&guest, &ada} {
		r := httptest.NewRequest(http.MethodGet, "/account", nil)
		w := httptest.NewRecorder()
		account.ServeHTTP(w, r.WithContext(session.NewContext(r.Context(), s)))
		fmt.Printf("%q: %d %s\n", s.User(), w.Code, cmp.Or(w.Header().Get("Location"), w.Body.String()))
	}
	// Output:
	// "": 303 /login
	// "ada": 200 your account
}
