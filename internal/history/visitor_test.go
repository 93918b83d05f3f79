package history

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A login with the cookie of an ended session begins another session. It counts as answered, although the visitor
// cannot use the response for the old session. A 503 does not count.
func TestALoginWithADeadCookieWasAnswered(t *testing.T) {
	t.Parallel()
	for status, silent := range map[int]int{http.StatusNoContent: 0, http.StatusServiceUnavailable: 1} {
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/count" {
				fmt.Fprintln(w, 0)
				return
			}
			http.SetCookie(w, &http.Cookie{Name: "a-login", Value: "new"})
			w.WriteHeader(status)
		}))
		defer site.Close()
		v := &Visitor{HTTP: site.Client(), Site: func(float64) string { return site.URL }, Logins: true}
		v.do(&session{}, 0, Operation{What: Login, Cookie: "a-login=dead"}, site.URL+"/login")
		if sum := v.Summary(); sum.Silent != silent {
			t.Errorf("status %d: %d requests have no response, want %d", status, sum.Silent, silent)
		}
	}
}
