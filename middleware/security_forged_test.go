package middleware_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// forgedModes chooses the mode by the request's method.
func forgedModes(r *http.Request) middleware.Mode {
	return map[string]middleware.Mode{"GET": middleware.ReadOnly, "PUT": middleware.Lazy}[r.Method] // else Exclusive
}

// newForged returns a handler without a network, and two genuine cookies for it.
func newForged(tb testing.TB, pool *redis.Pool) (h http.Handler, f *forger) {
	tb.Helper()
	sessions, err := middleware.New(store.New(pool, steady), middleware.Options{
		Keys: [][]byte{testKey}, Cookie: http.Cookie{Name: "sid"}, Mode: forgedModes,
	})
	if err != nil {
		tb.Fatal(err)
	}
	genuine := func() string {
		w := &recorder{header: http.Header{}}
		sessions.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			session.FromContext(r.Context()).Set("user", "ann")
		})).ServeHTTP(w, request(http.MethodPost, ""))
		cookie, err := http.ParseSetCookie(w.header.Get("Set-Cookie"))
		if err != nil {
			tb.Fatal(err)
		}
		return cookie.Value
	}
	h = sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := session.Start(r.Context())
		if err != nil || !s.IsNew() || s.Len() > 0 {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	return h, &forger{random: rand.New(rand.NewPCG(1, 2)), mine: genuine(), other: genuine()}
}

var million = flag.Bool("million", false, "forge a million cookies, rather than 20,000")

// P9: A request with forged cookies of any kind is answered like one without cookies: without a command to Redis, and
// without a cookie.
func TestAMillionForgedCookies(t *testing.T) {
	t.Parallel()
	cookies := 20_000
	if *million {
		cookies = 1_000_000
	}
	proxy := redistest.NewProxy(t, redistest.Embedded(t))
	h, f := newForged(t, proxy.Pool(t, 4))

	// A cookie that the forger signs with the right key is as good as genuine. So forgeries are refused for what is
	// wrong with them, and not for how they are made.
	for _, genuine := range []string{f.mine, sign(testKey, "sid", time.Now(), f.bytes(32))} {
		proxy.Forget()
		h.ServeHTTP(&recorder{header: http.Header{}}, request(http.MethodGet, "sid="+genuine))
		if proxy.Requests() == 0 {
			t.Fatal("a genuine cookie does not lead to Redis")
		}
	}
	proxy.Forget()

	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut}
	sent := 0
	for _, kind := range forgeries {
		for n := 0; n < cookies/len(forgeries)+1; n += kind.cookies {
			w := &recorder{header: http.Header{}}
			header := kind.forge(f)
			h.ServeHTTP(w, request(methods[sent%3], header))
			if w.status > http.StatusOK || w.header.Get("Set-Cookie") != "" {
				t.Fatalf("%s: status %d, header %v for %.500s", kind.name, w.status, w.header, header)
			}
			sent += kind.cookies
		}
		if proxy.Requests() > 0 {
			t.Errorf("%s: %d commands to Redis: %.200v", kind.name, proxy.Requests(), proxy.Commands())
			proxy.Forget()
		}
	}
	if sent < cookies {
		t.Errorf("only %d cookies were sent", sent)
	}
}

// Behind up to seven forged cookies the genuine one is found. With eight of them a sibling
// domain hides it: see TestAtMostEightCookiesAreVerified.
func TestForgedCookiesDoNotHideTheGenuineOne(t *testing.T) {
	t.Parallel()
	h, f := newForged(t, redistest.Embedded(t).Pool(t, 4))
	for n := range 8 {
		var header strings.Builder
		for range n {
			header.WriteString(forgeries[f.random.IntN(len(forgeries)-1)].forge(f) + "; ")
		}
		w := &recorder{header: http.Header{}}
		h.ServeHTTP(w, request(http.MethodGet, header.String()+"sid="+f.mine))
		if w.status != http.StatusTeapot {
			t.Errorf("behind %d forged cookies it was not found", n)
		}
	}
}

// BenchmarkForgedCookie measures what it costs to refuse a forged cookie.
func BenchmarkForgedCookie(b *testing.B) {
	h, f := newForged(b, redistest.Embedded(b).Pool(b, 4))
	b.Run("none", func(b *testing.B) { serve(b, h, http.MethodPost, "", nil) })
	for _, kind := range forgeries {
		b.Run(kind.name, func(b *testing.B) { serve(b, h, http.MethodPost, kind.forge(f), nil) })
	}
}

// sign makes a cookie by hand, the way securecookie documents it: what an attacker
// with the key could make.
func sign(key []byte, name string, at time.Time, secret []byte) string {
	text := fmt.Sprintf("%d|%s|", at.Unix(), base64.URLEncoding.EncodeToString(secret))
	mac := hmac.New(sha256.New, key)
	_, _ = io.WriteString(mac, name+"|"+strings.TrimSuffix(text, "|"))
	return base64.URLEncoding.EncodeToString(mac.Sum([]byte(text)))
}

// A forger makes Cookie headers that no program with this key has issued. It starts
// from two genuine cookies.
type forger struct {
	random *rand.Rand
	mine   string
	other  string
}

func (f *forger) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.random.Uint32())
	}
	return b
}

// plain returns the text that a cookie's value encodes. A forger may change it.
func plain(value string) []byte {
	b, err := base64.URLEncoding.DecodeString(value)
	if err != nil {
		panic(err)
	}
	return b
}

const (
	base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	manyCookies  = 40 // in one header
)

// forgeries are the ways to forge the cookie "sid". Each returns a Cookie header, which has the given number of
// cookies.
var forgeries = []struct {
	name    string
	cookies int
	forge   func(f *forger) string
}{
	{"random bytes", 1, func(f *forger) string { return "sid=" + base64.URLEncoding.EncodeToString(f.bytes(88)) }},
	{"random text", 1, func(f *forger) string {
		text := f.bytes(f.random.IntN(200))
		for i := range text {
			text[i] = "!#$%&'()*+-./:<=>?@[]^_`{|}~0aA"[text[i]%31] // all that net/http lets through
		}
		return "sid=" + string(text)
	}},
	{"truncated", 1, func(f *forger) string { return "sid=" + f.mine[:f.random.IntN(len(f.mine))] }},
	{"one bit flipped", 1, func(f *forger) string {
		b := plain(f.mine)
		b[f.random.IntN(len(b))] ^= 1 << f.random.IntN(8)
		return "sid=" + base64.URLEncoding.EncodeToString(b)
	}},
	{"my signature on another's secret", 1, func(f *forger) string {
		mine, other := plain(f.mine), plain(f.other)
		return "sid=" + base64.URLEncoding.EncodeToString(append(other[:len(other)-32], mine[len(mine)-32:]...))
	}},
	{"my signature on a random secret", 1, func(f *forger) string {
		b := plain(f.mine)
		copy(b[11:55], base64.URLEncoding.EncodeToString(f.bytes(32)))
		return "sid=" + base64.URLEncoding.EncodeToString(b)
	}},
	{"expired", 1, func(f *forger) string {
		old := time.Now().Add(-400*24*time.Hour - time.Duration(2+f.random.IntN(1e6))*time.Second)
		return "sid=" + sign(testKey, "sid", old, f.bytes(32))
	}},
	{"foreign key", 1, func(f *forger) string { return "sid=" + sign(f.bytes(32), "sid", time.Now(), f.bytes(32)) }},
	{"empty key", 1, func(f *forger) string {
		return "sid=" + sign(make([]byte, 32*f.random.IntN(2)), "sid", time.Now(), f.bytes(32))
	}},
	{"signed for another name", 1, func(f *forger) string {
		names := []string{"", "SID", "__Host-sid", "sid|1", "theme"}
		return "sid=" + sign(testKey, names[f.random.IntN(len(names))], time.Now(), f.bytes(32))
	}},
	{"signed, but not 32 bytes", 1, func(f *forger) string {
		sizes := []int{0, 1, 31, 33, 64}
		return "sid=" + sign(testKey, "sid", time.Now(), f.bytes(sizes[f.random.IntN(len(sizes))]))
	}},
	{"not canonical", 1, func(f *forger) string { // but decodes to the genuine one
		digits := strings.TrimRight(f.mine, "=")
		last := strings.IndexByte(base64Digits, digits[len(digits)-1])
		variants := []string{
			digits, digits + "=", f.mine + "=", // another padding
			digits[:len(digits)-1] + base64Digits[last^(1+f.random.IntN(15)):][:1] + "==", // bits that nobody reads
			f.mine[:60] + "\n" + f.mine[60:],                                              // which base64 skips
		}
		if other := strings.NewReplacer("-", "+", "_", "/").Replace(f.mine); other != f.mine {
			variants = append(variants, other) // another alphabet
		}
		return "sid=" + variants[f.random.IntN(len(variants))]
	}},
	{"secret without a signature", 1, func(f *forger) string {
		return "sid=" + string(plain(f.mine)[11:55])
	}},
	{"oversized", 1, func(f *forger) string {
		return "sid=" + f.mine + strings.Repeat("A", 393+f.random.IntN(4000))
	}},
	{"another cookie's name", 1, func(f *forger) string {
		names := []string{"__Host-sid", "__Secure-sid", "SID", "sid2", "xsid", "si", "sid.", "sid|", "\u2000sid"}
		return names[f.random.IntN(len(names))] + "=" + f.mine
	}},
	{"many of the same name", manyCookies, func(f *forger) string {
		var all bytes.Buffer
		for range manyCookies {
			fmt.Fprintf(&all, "sid=%s; ", base64.URLEncoding.EncodeToString(f.bytes(88)))
		}
		return all.String()
	}},
}
