package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// ASVS 3.5.1: a form on another site can neither log a visitor in, as somebody else, nor out, if
// the application is built like the example.
func TestTheExamplesLoginRefusesOtherSites(t *testing.T) {
	t.Parallel()
	st := store.New(redistest.Embedded(t).Pool(t, 4), steady)
	sessions, _ = middleware.New(st, middleware.Options{Keys: [][]byte{testKey}})
	mux = http.NewServeMux() // with -count the example is called more than once
	Example_login()
	send := func(path, cookie string, header map[string]string) *http.Response {
		form := strings.NewReader("user=mallory&password=open+sesame")
		req := httptest.NewRequest(http.MethodPost, "https://shop.example"+path, form)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for name, value := range header {
			req.Header.Set(name, value)
		}
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		w := httptest.NewRecorder()
		server.Handler.ServeHTTP(w, req)
		return w.Result()
	}
	own := map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "https://shop.example"}
	login := send("/login", "", own)
	cookie, _, _ := strings.Cut(login.Header.Get("Set-Cookie"), ";")
	if login.StatusCode != http.StatusSeeOther || cookie == "" {
		t.Fatalf("a login from the site itself: %d %v", login.StatusCode, login.Header)
	}
	for name, header := range map[string]map[string]string{
		"another site":     {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
		"a sibling domain": {"Sec-Fetch-Site": "same-site", "Origin": "https://evil.shop.example"},
		"an old browser":   {"Origin": "https://evil.example"},
		"a sandbox":        {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
	} {
		for _, path := range []string{"/login", "/logout"} {
			for _, cookie := range []string{"", cookie} {
				res := send(path, cookie, header)
				if res.StatusCode != http.StatusForbidden || res.Header.Get("Set-Cookie") != "" {
					t.Errorf("%s from %s: %d %v", path, name, res.StatusCode, res.Header)
				}
			}
		}
	}
	logout := send("/logout", cookie, own)
	if logout.StatusCode != http.StatusSeeOther || logout.Header.Get("Set-Cookie") == "" {
		t.Errorf("a logout from the site itself: %d %v", logout.StatusCode, logout.Header)
	}
}
