package middleware_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
	onEach(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
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
		free := old.hold(s.URL + "/pause")
		see(old.get(s.URL+"/add"), 503) // it is held for too long
		see(free(), 200)
		see(v.get(s.URL+"/login"), 200)
		see(old.get(s.URL+"/add"), 409)
		see(v.get(s.URL+"/logout"), 200)
		see(old.get(s.URL+"/logout"), 200)
		if len(tokens) != 4*5 || slices.Contains(tokens, "") {
			t.Errorf("%d forms of tokens were seen, want 20", len(tokens))
		}
	})
}

// The client gets one of eight texts about an error. The log has the details: who holds the session, its key in
// Redis, and what Redis has said.
func TestErrorAnswersRevealNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, v := begun(t, r, middleware.Options{LockWait: 50 * time.Millisecond}, app())
		id := v.get(s.URL + "/id").body
		free := v.hold(s.URL + "/pause")
		busy := v.get(s.URL + "/add")
		free().want(t, 200, "stored")
		r.Do(t, "SET", recordOf(id), "damaged", "PX", 60_000)
		broken := v.get(s.URL + "/add")
		r.Do(t, "DEL", recordOf(id))
		v.get(s.URL+"/add").want(t, 200, "1") // a new one
		old := with(t, v.cookies(s)...)
		v.get(s.URL+"/login").want(t, 200, "")
		moved := old.get(s.URL + "/add")
		renewed := v.get(s.URL + "/id").body
		free = v.hold(s.URL + "/pause")
		must(t, s.sessions.End(t.Context(), renewed))
		ended := free()
		r.Stop(t)
		away := old.get(s.URL + "/add")
		for text, a := range map[string]answer{
			"The session could not be used. Nothing was saved.":                                broken,
			"The session was renewed by another request. Nothing was saved. Please try again.": moved,
			"The session has ended. Nothing was saved. Please try again.":                      ended,
			"The session is not available just now. Nothing was saved. Please try again.":      busy,
			"The session is not available just now. Please try again.":                         away,
		} {
			a.want(t, a.StatusCode, text)
			if a.StatusCode < 400 {
				t.Errorf("%d %q", a.StatusCode, a.body)
			}
		}
		if n := len(s.log.Lines("session failed")); n != 5 || !strings.Contains(s.log.String(), id) {
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

// A program may wipe its keys once the middleware has them. The middleware must not sign with zeros then.
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
			"the public ID":      append(known, known...),
			"the ID as it reads": []byte(id + id)[:32],
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

// ASVS 7.2.4: whatever cookie an attacker plants in a visitor's browser before the
// login, it is worth nothing after it.
func TestAPlantedSessionIsWorthNothingAfterTheLogin(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, welcoming())
		for name, before := range map[string]func(attacker *visitor, id string){
			"alive":      func(*visitor, string) {},
			"timed out":  func(_ *visitor, id string) { r.Do(t, "DEL", recordOf(id)) },
			"just ended": func(attacker *visitor, _ string) { attacker.get(s.URL+"/logout").want(t, 200, "") },
		} {
			attacker := s.visitor(t)
			id := attacker.get(s.URL + "/id").body
			planted := attacker.cookies(s)
			before(attacker, id)

			victim := newVisitor(t)
			first, _ := http.NewRequest(http.MethodGet, s.URL, nil)
			victim.Jar.SetCookies(first.URL, planted)
			victim.get(s.URL+"/login").want(t, 200, "")
			victim.get(s.URL+"/user").want(t, 200, "ann")
			if victim.get(s.URL+"/id").body == id {
				t.Errorf("%s: the visitor has the planted ID", name)
			}
			attacker = with(t, planted...)
			attacker.get(s.URL+"/user").want(t, 200, "")
			attacker.get(s.URL+"/len").want(t, 200, "0")
			victim.get(s.URL+"/user").want(t, 200, "ann")
		}
	})
}

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

// ASVS 7.4.1: a request that had read the session before the logout, without a lock, finishes
// with what it has read. The next one finds nothing.
func TestAReadOnlyRequestUnderWayOutlivesTheLogout(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		var logout, next answer
		var s *site
		var v, old *visitor
		handle(mux, "/slow-get", func(own *session.Session, w http.ResponseWriter, _ *http.Request) {
			logout, next = v.get(s.URL+"/logout"), old.get(s.URL+"/get")
			n, _ := session.Get[int](own, "n")
			fmt.Fprint(w, n)
		})
		s, v = begun(t, r, middleware.Options{Mode: byPath(map[string]middleware.Mode{
			"/get": middleware.ReadOnly, "/slow-get": middleware.ReadOnly,
		})}, mux)
		old = with(t, v.cookies(s)...)
		underWay := old.get(s.URL + "/slow-get")
		logout.want(t, 200, "")
		next.want(t, 200, "0")
		underWay.want(t, 200, "1")
		if underWay.sets() {
			t.Errorf("its answer sets a cookie: %v", underWay.Header)
		}
	})
}

// ASVS 7.4.5: New keys end all sessions, in each process that has only the new keys. A process that still has the old
// keys goes on with the sessions as they were.
func TestNewKeysEndAllSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		site := func(key string) *site {
			return newSite(t, r.Pool(t, 4), middleware.Options{Keys: [][]byte{bytes.Repeat([]byte(key), 8)}}, app())
		}
		before, after := site("old "), site("new ")
		v := newVisitor(t)
		v.get(before.URL+"/login").want(t, 200, "")
		old := with(t, v.cookies(before)...)
		old.get(after.URL+"/len").want(t, 200, "0")
		old.get(before.URL+"/len").want(t, 200, "1")
	})
}

// ASVS 7.4.5: an administrator with nothing but redis-cli deletes the record. A request
// that is under way can neither write the session back nor move it to a new ID.
func TestDeletingTheRecordEndsASession(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, change := range []func(*session.Session){func(s *session.Session) { s.Set("n", 500) }, (*session.Session).Renew} {
			s, v := begunWith(t, r, middleware.Options{}, "/change", func(s *session.Session, _ http.ResponseWriter, _ *http.Request) {
				r.Do(t, "DEL", recordOf(s.ID()))
				change(s)
			})
			v.get(s.URL+"/change").want(t, 503, "*")
			v.get(s.URL+"/len").want(t, 200, "0")
			if synctest.Wait(); len(r.Keys(t)) != 0 {
				t.Errorf("these are left: %q", r.Keys(t))
			}
		}
	})
}

// Nothing that a client sends comes back in a header: not in the response of a handler that sets
// none of its own, and not in an error.
func TestNothingOfARequestGetsIntoAHeader(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		handler := newSessions(t, r, middleware.Options{}).Handler(app())
		ask := func(path, cookie string) http.Header {
			req := httptest.NewRequest("MARKER", path+"?MARKER=MARKER", strings.NewReader("MARKER"))
			for _, name := range []string{"Origin", "Referer", "User-Agent", "X-Forwarded-Host", "Marker"} {
				req.Header.Set(name, "MARKER")
			}
			req.Host = "MARKER"
			req.Header.Set("Cookie", cookie+"; sid=MARKER; MARKER=MARKER")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			return w.Result().Header
		}
		check := func(path string, h http.Header, sets bool) {
			t.Helper()
			echoed := strings.Contains(strings.ToUpper(fmt.Sprint(h)), "MARKER")
			if got := h.Get("Set-Cookie") != ""; got != sets || echoed {
				t.Errorf("%s: %v", path, h)
			}
		}
		added := ask("/add", "")
		check("a new session", added, true)
		pair, _, _ := strings.Cut(added.Get("Set-Cookie"), ";")
		check("a session", ask("/add", pair), false)
		check("a logout", ask("/logout", pair), true)
		check("a session that has ended", ask("/add", pair), true)
		moved, _, _ := strings.Cut(ask("/add", "").Get("Set-Cookie"), ";")
		check("a login", ask("/login", moved), true)
		check("an ID that has moved", ask("/add", moved), false)
		r.Stop(t)
		check("no Redis", ask("/add", pair), false)
	})
}

// asvs are the rows of OWASP ASVS 5.0 that SECURITY.md must go through: all of V7 and
// of V3.3, and what is said about forged requests and caches.
var asvs = strings.Fields(`
	7.1.1 7.1.2 7.1.3 7.2.1 7.2.2 7.2.3 7.2.4 7.3.1 7.3.2 7.4.1 7.4.2 7.4.3 7.4.4 7.4.5
	7.5.1 7.5.2 7.5.3 7.6.1 7.6.2 3.3.1 3.3.2 3.3.3 3.3.4 3.3.5 3.5.1 14.3.1 14.3.2`)

// The table in SECURITY.md is complete. Each row says who is responsible, Latchkey or the application, and names a
// test of what Latchkey does. TestTheTestsThatPagesNameExist looks for these tests.
func TestTheSecurityTableIsTrue(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+\.\d\.\d) \|[^|]+\|([^|]+)\|([^|]+)\|$`).FindAllStringSubmatch(read(t, "SECURITY.md"), -1) {
		number, how, shown := row[1], row[2], row[3]
		rows = append(rows, number)
		ours, theirs := strings.Contains(how, "**Latchkey"), strings.Contains(how, "**Application")
		if !ours && !theirs {
			t.Errorf("%s does not say whether Latchkey or the application is responsible", number)
		}
		if ours && !testNamed.MatchString(shown) {
			t.Errorf("%s names no test", number)
		}
	}
	if !slices.Equal(rows, asvs) {
		t.Errorf("the rows are %v, want %v", rows, asvs)
	}
}
