package middleware_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gorilla/securecookie"
)

// P11: the defaults are the safe ones.
func TestTheCookieIsSafeByDefault(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	s, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{Keys: [][]byte{testKey}})
	if err != nil {
		t.Fatal(err)
	}
	none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
	a := newVisitor(t).get(newSite(t, r.Pool(t, 1), none, s.Handler(app())).URL + "/add")
	cookie := a.Cookies()[0]
	if cookie.Name != "__Host-session" || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode ||
		cookie.Path != "/" || cookie.Domain != "" || cookie.MaxAge != 0 {
		t.Errorf("%s", a.Header.Get("Set-Cookie"))
	}
	if a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("an answer with the cookie may be cached: %v", a.Header)
	}
}

// P11: the cookie is as the options say, except that it is always HttpOnly.
func TestTheCookieIsAsGiven(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	s := newSite(t, r.Pool(t, 4), middleware.Options{Cookie: http.Cookie{
		Name: "mine", Path: "/app", MaxAge: 3600, SameSite: http.SameSiteStrictMode, Domain: "example.org",
	}}, app())
	got := newVisitor(t).get(s.URL + "/add").Header.Get("Set-Cookie")
	if !strings.HasPrefix(got, "mine=") || !strings.HasSuffix(got, "; Path=/app; Domain=example.org; Max-Age=3600; HttpOnly; SameSite=Strict") {
		t.Error(got)
	}
}

// P11: the secret is in the cookie, and nowhere else: Redis and the log know its
// hash, the public id.
func TestTheSecretStaysInTheCookie(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/lose", func(_ http.ResponseWriter, req *http.Request) {
			loseLock(t, r, req)
			mux.ServeHTTP(nil, as(req, "/login"))
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		v.get(s.URL+"/lose").want(t, 503, "*") // so that there is a log

		codec := securecookie.New(testKey, nil)
		codec.SetSerializer(securecookie.NopEncoder{})
		var secret []byte
		if err := codec.Decode("sid", v.cookies(s)[0].Value, &secret); err != nil || len(secret) != 32 {
			t.Fatalf("%v, %d bytes", err, len(secret))
		}
		sum := sha256.Sum256(secret)
		id := base64.RawURLEncoding.EncodeToString(sum[:16])
		if got := v.get(s.URL + "/id").body; got != id {
			t.Errorf("the public id is %s, want half of the secret's SHA-256, %s", got, id)
		}
		record, _ := keysOf(id)
		value, _ := r.Get(t, record)
		seen := strings.Join(r.Keys(t), " ") + value + s.log.String()
		if !strings.Contains(seen, id) || len(s.log.Lines("session failed")) != 1 {
			t.Errorf("nothing to look at: %s", seen)
		}
		for name, form := range map[string]string{
			"raw": string(secret), "hex": hex.EncodeToString(secret), "cookie": v.cookies(s)[0].Value,
			"base64": strings.TrimRight(base64.StdEncoding.EncodeToString(secret), "="), "base64url": base64.RawURLEncoding.EncodeToString(secret),
		} {
			if strings.Contains(seen, form) {
				t.Errorf("the secret leaks, as %s", name)
			}
		}
	})
}

// P11: keys are rotated without logging anybody out.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	older, newer := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 64)
	site := func(keys ...[]byte) *site { return newSite(t, r.Pool(t, 4), middleware.Options{Keys: keys}, app()) }
	before, during, after := site(older), site(newer, older), site(newer)

	early, late := newVisitor(t), newVisitor(t)
	early.get(before.URL+"/add").want(t, 200, "1")
	early.get(during.URL+"/add").want(t, 200, "2")
	early.get(after.URL+"/get").want(t, 200, "0")
	late.get(during.URL+"/add").want(t, 200, "1")
	late.get(after.URL+"/add").want(t, 200, "2")
}

// So it is for those who are remembered again and again: Remember signs with the newest key.
func TestKeyRotationWithRemember(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	older, newer := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("n"), 64)
	site := func(keys ...[]byte) *site {
		return newSite(t, r.Pool(t, 4), middleware.Options{Keys: keys}, rememberer())
	}
	before, during, after := site(older), site(newer, older), site(newer)

	v := newVisitor(t)
	v.get(before.URL+"/add-and-remember?for=48h").want(t, 200, "1")
	v.get(during.URL+"/remember?for=48h").want(t, 200, "")
	v.get(after.URL+"/add").want(t, 200, "2")
}
