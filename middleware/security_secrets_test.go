package middleware_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// ASVS 3.3.4: the session's token reaches the client in Set-Cookie, and in no other
// way: in no body, no other header, no error.
func TestTheTokenIsInSetCookieOnly(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		busy, free := pausing(mux)
		mux.HandleFunc("/chan", func(_ http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("c", make(chan int))
		})
		handle(mux, "/ids", func(s *session.Session, w http.ResponseWriter, req *http.Request) {
			before := s.ID()
			s.Renew()
			must(t, s.Commit(req.Context()))
			fmt.Fprint(w, before, " became ", s.ID())
		})
		mux.HandleFunc("/lose", func(_ http.ResponseWriter, req *http.Request) {
			session.FromContext(req.Context()).Set("n", 9)
			loseLock(t, r, req)
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{
			LockWait: 50 * time.Millisecond,
			Mode:     byPath(map[string]middleware.Mode{"/set/readonly": middleware.ReadOnly}),
		}, mux)
		v := newVisitor(t)
		var tokens []string // in all forms
		see := func(a answer, status int) {
			t.Helper()
			a.want(t, status, "*")
			for _, c := range a.Cookies() {
				if c.Value != "" {
					secret, err := base64.URLEncoding.DecodeString(strings.Split(string(plain(c.Value)), "|")[1])
					must(t, err)
					tokens = append(tokens, c.Value, string(secret), hex.EncodeToString(secret),
						base64.RawStdEncoding.EncodeToString(secret), base64.RawURLEncoding.EncodeToString(secret))
				}
			}
			a.Header.Del("Set-Cookie")
			head, err := httputil.DumpResponse(a.Response, false)
			must(t, err)
			for _, token := range tokens {
				if strings.Contains(string(head)+a.body, token) {
					t.Errorf("%s: the token is in\n%s%s", a.Request.URL, head, a.body)
				}
			}
		}
		see(v.get(s.URL+"/add"), 200)
		see(v.get(s.URL+"/login"), 200)
		see(v.get(s.URL+"/ids"), 200)
		see(v.get(s.URL+"/no-such-page"), 404)
		see(v.get(s.URL+"/chan"), 500)
		see(v.get(s.URL+"/set/readonly"), 500)
		see(v.get(s.URL+"/lose"), 503)
		old := with(t, v.cookies(s)...)
		done := old.start(s.URL + "/pause")
		<-busy
		see(old.get(s.URL+"/add"), 503) // it is held for too long
		close(free)
		see(<-done, 200)
		see(v.get(s.URL+"/logout"), 200)
		see(old.get(s.URL+"/add"), 409)
		see(old.get(s.URL+"/logout"), 200)
		if len(tokens) != 3*5 || slices.Contains(tokens, "") {
			t.Errorf("not all was seen: %d", len(tokens))
		}
	})
}

// The client gets one of six sentences about an error. The log has all of it: who holds
// the session, which key in Redis it concerns, what Redis has said.
func TestErrorAnswersRevealNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		holding, free := pausing(mux)
		s, v := begun(t, r, middleware.Options{LockWait: 50 * time.Millisecond}, mux)
		id := v.get(s.URL + "/id").body
		done := v.start(s.URL + "/pause")
		<-holding
		busy := v.get(s.URL + "/add")
		close(free)
		(<-done).want(t, 200, "stored")
		r.Do(t, "SET", recordOf(id), "damaged", "PX", 60_000)
		broken := v.get(s.URL + "/add")
		r.Do(t, "DEL", recordOf(id))
		v.get(s.URL+"/add").want(t, 200, "1") // a new one
		old := with(t, v.cookies(s)...)
		v.get(s.URL+"/logout").want(t, 200, "")
		ended := old.get(s.URL + "/add")
		r.Stop(t)
		away := old.get(s.URL + "/add")
		for text, a := range map[string]answer{
			"The session could not be used. Nothing was saved.":                                broken,
			"The session was ended by another request. Nothing was saved. Please start again.": ended,
			"The session is not available just now. Nothing was saved. Please try again.":      busy,
			"The session is not available just now. Please try again.":                         away,
		} {
			a.want(t, a.StatusCode, text)
			if a.StatusCode < 400 {
				t.Errorf("%d %q", a.StatusCode, a.body)
			}
		}
		if n := len(s.log.Lines("session failed")); n != 4 || !strings.Contains(s.log.String(), id) {
			t.Errorf("%d lines in the log:\n%s", n, s.log)
		}
	})
}

// Printing or logging the middleware does not show its keys.
func TestPrintingTheMiddlewareShowsNoKey(t *testing.T) {
	t.Parallel()
	key := []byte("\xa1\xa4\xa7\xaa\xad\xb0\xb3\xb6\xb9\xbc\xbf\xc2\xc5\xc8\xcb\xce" + "\xd1\xd4\xd7\xda\xdd\xe0\xe3\xe6\xe9\xec\xef\xf2\xf5\xf8\xfb\xfe")
	s, err := middleware.New(store.New(&redis.Pool{}, store.Options{}), middleware.Options{Keys: [][]byte{key}})
	must(t, err)
	var seen string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		seen += fmt.Sprintf(verb, s) + fmt.Sprintf(verb, *s)
	}
	part := key[4:8]
	for _, form := range []string{string(part), hex.EncodeToString(part), "173 176 179 182", "0xad, 0xb0, 0xb3, 0xb6", base64.StdEncoding.EncodeToString(key[:30])} {
		if strings.Contains(seen, form) {
			t.Errorf("the key is there, as %q", form)
		}
	}
	if !strings.Contains(seen, "__Host-session") {
		t.Errorf("nothing to look at: %s", seen)
	}
}

// A program may wipe its keys once the middleware has them: it must not sign with zeros
// then.
func TestKeysMayBeWipedAfterNew(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		key := slices.Clone(testKey)
		wiped := newSite(t, r.Pool(t, 4), middleware.Options{Keys: [][]byte{key}}, app())
		clear(key)
		other := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		v := newVisitor(t).everywhere()
		v.get(wiped.URL+"/add").want(t, 200, "1")
		v.get(other.URL+"/add").want(t, 200, "2")
	})
}

// ASVS 7.2.2: the signing key alone opens no session, not even together with all that Redis and
// the logs know. A secret is needed, and that is in the visitor's cookie only.
func TestTheKeysAloneOpenNoSession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{}, app())
		id := v.get(s.URL + "/id").body
		known, err := base64.RawURLEncoding.DecodeString(id)
		must(t, err)
		for name, secret := range map[string][]byte{
			"any":                bytes.Repeat([]byte("s"), 32),
			"the public id":      append(known, known...),
			"the id as it reads": []byte(id + id)[:32],
		} {
			forged := &http.Cookie{Name: "sid", Value: sign(testKey, "sid", time.Now(), secret)}
			with(t, forged).get(s.URL+"/get").want(t, 200, "0")
			if got := with(t, forged).get(s.URL + "/id").body; got == id {
				t.Errorf("%s: it leads to the session", name)
			}
		}
		v.get(s.URL+"/get").want(t, 200, "1")
	})
}
