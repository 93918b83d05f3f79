package middleware

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/internal/secret"
)

// FuzzReadCookie: no value makes the reader panic, and it accepts none that the key has
// not signed, which is verified here by hand.
func FuzzReadCookie(f *testing.F) {
	key := bytes.Repeat([]byte("k"), 32)
	c, err := newCookies(Options{Keys: [][]byte{key}})
	if err != nil {
		f.Fatal(err)
	}
	cookie, err := c.issue(secret.New())
	if err != nil {
		f.Fatal(err)
	}
	if _, genuine := signed(key, c.pattern.Name, cookie.Value); !genuine {
		f.Fatal("the check by hand refuses what was issued")
	}
	f.Add(cookie.Value)
	f.Fuzz(func(t *testing.T, value string) {
		r := &http.Request{Header: http.Header{"Cookie": {c.pattern.Name + "=" + value}}}
		ids := c.read(r, nil)
		// net/http may strip quotes or cut at a semicolon; what is left counts.
		for _, seen := range r.CookiesNamed(c.pattern.Name) {
			if secret, genuine := signed(key, c.pattern.Name, seen.Value); genuine && slices.Equal(ids, []string{idOf(secret)}) {
				return
			}
		}
		if len(ids) > 0 {
			t.Errorf("%q was taken for a genuine cookie", value)
		}
	})
}

func idOf(secret []byte) string {
	sum := sha256.Sum256(secret)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// signed checks the signature of a cookie the way securecookie documents it, and
// returns the secret.
func signed(key []byte, name, value string) (secret []byte, ok bool) {
	plain, err := base64.URLEncoding.Strict().DecodeString(value)
	if err != nil {
		return nil, false
	}
	parts := bytes.SplitN(plain, []byte("|"), 3) // date, value, signature
	if len(parts) != 3 {
		return nil, false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(bytes.Join([][]byte{[]byte(name), parts[0], parts[1]}, []byte("|")))
	secret, err = base64.URLEncoding.DecodeString(string(parts[1]))
	return secret, err == nil && hmac.Equal(mac.Sum(nil), parts[2])
}
