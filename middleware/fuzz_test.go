package middleware

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/session"
)

// FuzzReadCookie: no value makes the reader panic, and the only value that is
// taken for a secret is the one that was issued for it.
func FuzzReadCookie(f *testing.F) {
	c, err := newCookies(Options{Keys: [][]byte{bytes.Repeat([]byte("k"), 32)}})
	if err != nil {
		f.Fatal(err)
	}
	issued := make(map[string]session.Secret)
	for range 3 {
		secret := session.NewSecret()
		cookie, err := c.issue(secret)
		if err != nil {
			f.Fatal(err)
		}
		issued[cookie.Value] = secret
		f.Add(cookie.Value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := &http.Request{Header: http.Header{"Cookie": {c.pattern.Name + "=" + value}}}
		got, ok := c.read(r)
		// Parsing may strip quotes or cut at a semicolon; what is left counts.
		seen := r.CookiesNamed(c.pattern.Name)
		if ok && (len(seen) == 0 || issued[seen[0].Value].ID() != got.ID()) {
			t.Errorf("%q was taken for a genuine cookie", value)
		}
		if len(seen) > 0 {
			if want, genuine := issued[seen[0].Value]; genuine && (!ok || got.ID() != want.ID()) {
				t.Errorf("the genuine cookie %q was refused", value)
			}
		}
	})
}
