package middleware_test

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/logtest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// The log says when sessions are set up wrong: once a minute at most, with how many cookies or requests have shown it.

// warned checks that the log has these lines of a kind, and no ID in them.
func warned(t *testing.T, log *logtest.Buffer, kind string, counts ...string) {
	t.Helper()
	lines := log.Lines("level=WARN", "kind="+kind+" ")
	if len(lines) != len(counts) {
		t.Fatalf("%d lines of %s, want %d:\n%s", len(lines), kind, len(counts), log)
	}
	for i, line := range lines {
		if !strings.Contains(line+" ", " count="+counts[i]) || strings.Contains(line, "session=") {
			t.Errorf("line %d should count %s, and name no session: %s", i, counts[i], line)
		}
	}
}

// Another process has other keys: visitors are logged in and out by turns.
func TestTheLogTellsOfCookiesWithAnUnknownKey(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		old := bytes.Repeat([]byte("old "), 8)
		here := newSite(t, r.Pool(t, 4), middleware.Options{Keys: [][]byte{testKey, old}}, app())
		newer := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		there := newSite(t, r.Pool(t, 4), middleware.Options{Keys: [][]byte{old}}, app())
		v := there.visitor(t)
		foreign := with(t, v.cookies(there)...)
		for range 4 {
			foreign.get(newer.URL+"/get").want(t, 200, "0")
		}
		warned(t, newer.log, "unknown_key", "1")
		redistest.Elapse(time.Minute)
		foreign.get(newer.URL+"/get").want(t, 200, "0")
		foreign.get(newer.URL+"/get").want(t, 200, "0")
		warned(t, newer.log, "unknown_key", "1", "4")

		// With both keys there is no warning. Cookies that are not ours at all, or are too old, cause none either.
		foreign.get(here.URL+"/get").want(t, 200, "1")
		for _, value := range []string{"", "garbage", strings.Repeat("A", 120), "MTIzfGFiY3xkZWY="} {
			with(t, &http.Cookie{Name: "sid", Value: value}).get(here.URL+"/get").want(t, 200, "0")
		}
		redistest.Elapse(401 * 24 * time.Hour)
		foreign.get(here.URL+"/get").want(t, 200, "0")
		warned(t, here.log, "unknown_key")
	})
}

// Tokens are verified as cookies are.
func TestTheLogTellsOfTokensWithAnUnknownKey(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		there := newSite(t, r.Pool(t, 4), middleware.Options{Keys: [][]byte{bytes.Repeat([]byte("old "), 8)}}, app())
		here := newSite(t, r.Pool(t, 4), middleware.Options{Token: middleware.Bearer}, app())
		cookie := there.visitor(t).cookie(there)
		for _, token := range []string{cookie.Value, cookie.Value, "another.programs.token"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, here.URL+"/get", nil)
			must(t, err)
			req.Header.Set("Authorization", "Bearer "+token)
			newVisitor(t).do(req).want(t, 200, "0")
		}
		warned(t, here.log, "unknown_key", "1")
		redistest.Elapse(time.Minute)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, here.URL+"/get", nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+cookie.Value)
		newVisitor(t).do(req).want(t, 200, "0")
		warned(t, here.log, "unknown_key", "1", "2")
	})
}

// Browsers drop a Secure cookie that comes over plain HTTP: each request begins a session. They send a cookie that is not
// Secure over plain HTTP, even if it came over HTTPS.
func TestTheLogTellsOfACookieThatDoesNotFitTheTransport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header, value string
		over          *tls.ConnectionState
		secure        bool
		warns         string
	}{
		"plain HTTP":                                   {secure: true, warns: "plain_http"},
		"a proxy that says http":                       {header: "X-Forwarded-Proto", value: "http", secure: true, warns: "plain_http"},
		"a proxy that names no protocol":               {header: "Forwarded", value: "for=1.2.3.4", secure: true, warns: "plain_http"},
		"HTTPS":                                        {over: &tls.ConnectionState{}, secure: true},
		"HTTPS with a proxy":                           {header: "X-Forwarded-Proto", value: "HTTPS", secure: true},
		"HTTPS with the first of two proxies":          {header: "X-Forwarded-Proto", value: "https, http", secure: true},
		"HTTPS with a proxy, RFC 7239":                 {header: "Forwarded", value: `for="[2001:db8::1]";proto=https;by=a, for=b`, secure: true},
		"HTTPS with a proxy, RFC 7239, in quotes":      {header: "Forwarded", value: `For=a; Proto="https"`, secure: true},
		"a cookie that is not Secure":                  {},
		"a cookie that is not Secure, over HTTPS":      {over: &tls.ConnectionState{}, warns: "not_secure"},
		"a cookie that is not Secure, through a proxy": {header: "X-Forwarded-Proto", value: "https", warns: "not_secure"},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			log := &logtest.Buffer{}
			h := plainHandler(t, r, c.secure, log)
			add := func() {
				req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
				req.TLS = c.over
				if c.header != "" {
					req.Header.Set(c.header, c.value)
				}
				h.ServeHTTP(httptest.NewRecorder(), req)
			}
			for range 3 {
				add()
			}
			redistest.Elapse(time.Minute)
			add()
			for _, kind := range []string{"plain_http", "not_secure"} {
				if kind == c.warns {
					warned(t, log, kind, "1", "3")
				} else {
					warned(t, log, kind)
				}
			}
		})
	}
}

// If the cookie comes back over plain HTTP, a proxy in front speaks HTTPS and does not say so.
func TestASecureCookieThatComesBackIsNoMistake(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		log := &logtest.Buffer{}
		h := plainHandler(t, r, true, log)
		w := serveOnce(t, h)
		warned(t, log, "plain_http", "1")
		redistest.Elapse(time.Minute)
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		req.Header.Set("Cookie", strings.SplitN(w.Header().Get("Set-Cookie"), ";", 2)[0])
		h.ServeHTTP(httptest.NewRecorder(), req)
		serveOnce(t, h)
		warned(t, log, "plain_http", "1")
	})
}

// plainHandler is a handler that begins a session.
func plainHandler(t *testing.T, r *redistest.Server, secure bool, log *logtest.Buffer) http.Handler {
	t.Helper()
	s, err := middleware.New(store.New(r.Pool(t, 4), steady), middleware.Options{Keys: [][]byte{testKey}, Logger: log.Logger(),
		Cookie: http.Cookie{Name: "sid", Secure: secure}})
	must(t, err)
	return s.Handler(http.HandlerFunc(writes))
}

// The member's cookie of one Sessions has the name of the guest's cookie of another: a visitor whom the first has
// logged in is a guest with the second, in the same session.
func TestTheLogTellsOfTwoSessionsWithOneName(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		one := siteWith(t, r, middleware.Options{}, "/in", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) { s.Login("ann") })
		other := newSite(t, r.Pool(t, 4), middleware.Options{Cookie: http.Cookie{Name: "sid-login"}}, app())
		v, _ := one.begins(t)
		v.get(other.URL+"/get").want(t, 200, "0")
		warned(t, other.log, "shared_name")
		v.get(one.URL+"/in").want(t, 200, "")
		for range 3 {
			v.get(other.URL+"/get").want(t, 200, "1")
		}
		v.get(one.URL+"/get").want(t, 200, "1")
		redistest.Elapse(time.Minute)
		v.get(other.URL+"/get").want(t, 200, "1")
		warned(t, other.log, "shared_name", "1", "3")
		warned(t, one.log, "shared_name")
	})
}

// While a later version is rolled out, or after it was rolled back, there are records that this version cannot read.
func TestTheLogTellsOfALaterFormat(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{Mode: optimisticGets}, app())
		key := recordOf(v.get(s.URL + "/id").body)
		record, _ := r.Get(t, key)
		r.Do(t, "SET", key, strings.Replace(record, `"v":2`, `"v":3`, 1), "KEEPTTL")
		v.get(s.URL+"/get").want(t, 500, "*")
		v.post(s.URL+"/add").want(t, 500, "*")
		if len(s.log.Lines("session failed", "kind=corrupt", "a later version of Latchkey has written it: its format is 3")) != 2 {
			t.Errorf("log:\n%s", s.log)
		}
		redistest.Elapse(time.Minute)
		v.get(s.URL+"/get").want(t, 500, "*")
		warned(t, s.log, "later_format", "1", "2")
	})
}
