package session_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/a2139e8d/latchkey/session"
)

// A page that matters more than others asks for the password again, unless the login is fresh.
func ExampleSession_LoginTime() {
	account := func(w http.ResponseWriter, r *http.Request) {
		s := session.FromContext(r.Context())
		if time.Since(s.LoginTime()) > 5*time.Minute { // a guest's LoginTime is zero
			http.Redirect(w, r, "/login", http.StatusSeeOther)
			return
		}
		fmt.Fprint(w, "choose a new password")
	}

	var guest, ada session.Session // a handler's test needs no store
	ada.Login("ada")
	for _, s := range []*session.Session{&guest, &ada} {
		r := httptest.NewRequest(http.MethodGet, "/account", nil)
		w := httptest.NewRecorder()
		account(w, r.WithContext(session.NewContext(r.Context(), s)))
		fmt.Println(w.Code, cmp.Or(w.Header().Get("Location"), w.Body.String()))
	}
	// Output:
	// 303 /login
	// 200 choose a new password
}
