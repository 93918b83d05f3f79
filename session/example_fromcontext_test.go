package session_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/a2139e8d/latchkey/session"
)

// saveTheme needs only the context of the request. So sessions do not spoil the signatures of a program.
func saveTheme(ctx context.Context, theme string) {
	session.FromContext(ctx).Set("theme", theme)
}

// Any code that has the request's context finds the session.
func ExampleFromContext() {
	choose := func(w http.ResponseWriter, r *http.Request) {
		saveTheme(r.Context(), r.FormValue("theme"))
	}

	var s session.Session // a handler's test needs no store
	r := httptest.NewRequest(http.MethodPost, "/choose?theme=dark", nil)
	choose(httptest.NewRecorder(), r.WithContext(session.NewContext(r.Context(), &s)))
	fmt.Println(session.Get[string](&s, "theme"))
	// Output:
	// dark true
}
