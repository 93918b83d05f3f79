package middleware_test

import (
	"flag"
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

// P9: forged cookies of all kinds are answered like none at all, without a
// command to Redis and without a cookie.
func TestAMillionForgedCookies(t *testing.T) {
	t.Parallel()
	cookies := 20_000
	if *million {
		cookies = 1_000_000
	}
	proxy := redistest.NewProxy(t, redistest.Embedded(t))
	h, f := newForged(t, proxy.Pool(t, 4))

	// What the forger signs with the right key is as good as genuine. So forgeries are
	// refused for what is wrong with them, and not for how they are made.
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

// BenchmarkForgedCookie is what it costs to refuse a request for its cookie.
func BenchmarkForgedCookie(b *testing.B) {
	h, f := newForged(b, redistest.Embedded(b).Pool(b, 4))
	b.Run("none", func(b *testing.B) { serve(b, h, http.MethodPost, "", nil) })
	for _, kind := range forgeries {
		b.Run(kind.name, func(b *testing.B) { serve(b, h, http.MethodPost, kind.forge(f), nil) })
	}
}
