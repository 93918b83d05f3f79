package middleware_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
	"github.com/gorilla/securecookie"
)

// P11: the defaults are the safe ones.
func TestTheCookieIsSafeByDefault(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s, err := middleware.New(store.New(r.Pool(t, 4), steady), middleware.Options{Keys: [][]byte{testKey}})
		must(t, err)
		got := serveOnce(t, s.Handler(http.HandlerFunc(writes))).Header().Get("Set-Cookie")
		if !regexp.MustCompile(`^__Host-session=[^;]+; Path=/; HttpOnly; Secure; SameSite=Lax$`).MatchString(got) {
			t.Errorf("Set-Cookie: %s", got)
		}
	})
}

// P11: the secret is in the cookie, and nowhere else: Redis and the log know its
// hash, the public ID.
func TestTheSecretStaysInTheCookie(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		mux := app()
		mux.HandleFunc("/lose", func(_ http.ResponseWriter, req *http.Request) {
			loseLock(t, r, req)
			mux.ServeHTTP(nil, as(req, "/login"))
		})
		s, v := begun(t, r, middleware.Options{}, mux)
		v.get(s.URL+"/lose").want(t, 503, "*") // so that there is a log

		codec := securecookie.New(testKey, nil)
		codec.SetSerializer(securecookie.NopEncoder{})
		cookie := v.cookie(s).Value
		var secret []byte
		if err := codec.Decode("sid", cookie, &secret); err != nil || len(secret) != 32 {
			t.Fatalf("%v, %d bytes", err, len(secret))
		}
		sum := sha256.Sum256(secret)
		id := base64.RawURLEncoding.EncodeToString(sum[:16])
		v.get(s.URL+"/id").want(t, 200, id) // half of the secret's SHA-256
		record, _ := keysOf(id)
		value, _ := r.Get(t, record)
		seen := strings.Join(r.Keys(t), " ") + value + s.log.String()
		if !strings.Contains(seen, id) || len(s.log.Lines("session failed")) != 1 {
			t.Errorf("nothing to look at: %s", seen)
		}
		for name, form := range map[string]string{
			"raw": string(secret), "hex": hex.EncodeToString(secret), "cookie": cookie,
			"base64": strings.TrimRight(base64.StdEncoding.EncodeToString(secret), "="), "base64url": base64.RawURLEncoding.EncodeToString(secret),
		} {
			if strings.Contains(seen, form) {
				t.Errorf("the secret leaks, as %s", name)
			}
		}
	})
}

// P11: A change of keys logs nobody out, whether a cookie is set once or is set again, as by Remember. The newest key
// signs a cookie that is set again.
func TestKeyRotation(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		older, newer := bytes.Repeat([]byte("old "), 8), bytes.Repeat([]byte("new "), 16)
		site := func(keys ...[]byte) *site {
			return newSite(t, r.Pool(t, 4), middleware.Options{Keys: keys}, rememberer())
		}
		before, during, after := site(older), site(newer, older), site(newer)

		early, late, remembered := newVisitor(t).everywhere(), newVisitor(t).everywhere(), newVisitor(t).everywhere()
		early.get(before.URL+"/add").want(t, 200, "1")
		early.get(during.URL+"/add").want(t, 200, "2")
		early.get(after.URL+"/get").want(t, 200, "0")
		late.get(during.URL+"/add").want(t, 200, "1")
		late.get(after.URL+"/add").want(t, 200, "2")
		remembered.get(before.URL+"/add-and-remember?for=48h").want(t, 200, "1")
		remembered.get(during.URL+"/remember?for=48h").want(t, 200, "")
		remembered.get(after.URL+"/add").want(t, 200, "2")
	})
}

// Of several cookies with the right name, the first that opens a session counts. The browser sends cookies with
// longer paths first, and then older ones. So neither a forged cookie nor the cookie of an ended session
// hides the visitor's own.
func TestOfSeveralCookiesTheFirstLiveOneCounts(t *testing.T) {
	onEach(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{Mode: func(req *http.Request) middleware.Mode {
			if req.URL.RawQuery == "read-only" {
				return middleware.ReadOnly
			}
			return middleware.Exclusive
		}}, app())
		one, _ := s.count(t, 1)
		two, _ := s.count(t, 2)
		gone, _ := s.count(t, 3)
		s.end(t, r, gone, true)
		unknown, _ := s.count(t, 4)
		s.end(t, r, unknown, false)
		forged := &http.Cookie{Name: "sid", Value: "forged"}
		for _, tt := range []struct {
			cookies []*http.Cookie
			want    string
		}{
			{[]*http.Cookie{one, two}, "1"},
			{[]*http.Cookie{two, one}, "2"},
			{[]*http.Cookie{forged, two, one}, "2"},
			{[]*http.Cookie{gone, two}, "2"},
			{[]*http.Cookie{unknown, two}, "2"},
			{[]*http.Cookie{unknown, gone, unknown, forged, one, two}, "1"},
			{[]*http.Cookie{unknown, gone}, "0"},
		} {
			with(t, tt.cookies...).get(s.URL+"/get").want(t, 200, tt.want)
			with(t, tt.cookies...).get(s.URL+"/get?read-only").want(t, 200, tt.want)
		}

		// If the ID of one of the cookies has moved less than a minute ago, another cookie may be on its way.
		moved, _ := s.count(t, 1)
		with(t, moved).get(s.URL+"/login").want(t, 200, "")
		for _, cookies := range [][]*http.Cookie{{unknown, gone, moved}, {moved, gone, unknown}} {
			v := with(t, cookies...)
			v.background("POST", s.URL+"/add").want(t, 409, "*")
			if a := v.navigate("POST", s.URL+"/add"); a.body != "1" || !a.sets() {
				t.Errorf("%d %q, header %v", a.StatusCode, a.body, a.Header)
			}
		}
	})
}

// Two cookies that each open a session are a mistake of the application, or an attack. So they are logged. The second
// session is not locked, prolonged or changed.
func TestTwoLiveCookiesAreReported(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, app())
		used, usedID := s.count(t, 1)
		other, otherID := s.count(t, 2)
		dead, _ := s.count(t, 1)
		s.end(t, r, dead, true)
		const warning = "the cookies of two sessions"

		for _, cookies := range [][]*http.Cookie{{used}, {used, used}, {dead, used}, {used, dead}} {
			with(t, cookies...).get(s.URL+"/get").want(t, 200, "1")
		}
		if strings.Contains(s.log.String(), warning) {
			t.Errorf("there was only one session; log:\n%s", s.log)
		}

		record, lock := keysOf(otherID)
		r.Do(t, "PEXPIRE", record, time.Minute.Milliseconds())
		before, _ := r.Get(t, record)
		proxy.Forget()
		with(t, dead, used, dead, other).get(s.URL+"/add").want(t, 200, "2")
		if lines := s.log.Lines(warning); len(lines) != 1 || !strings.Contains(lines[0], "level=WARN") ||
			!strings.Contains(lines[0], "session="+usedID) || !strings.Contains(lines[0], "other="+otherID) {
			t.Errorf("log:\n%s", s.log)
		}
		for _, cmd := range proxy.Commands() {
			if slices.Contains(cmd.Args, lock) {
				t.Errorf("the lock of the second session is touched: %v", cmd)
			}
		}
		if n := proxy.RoundTrips(); n != 3 {
			t.Errorf("%d round trips to Redis, want 3: acquire, read, commit; the dead session is known", n)
		}
		if after, _ := r.Get(t, record); after != before {
			t.Errorf("the second session was %s and is %s", before, after)
		}
		if left := r.Do(t, "PTTL", record).(int64); left > time.Minute.Milliseconds() {
			t.Errorf("the second session was prolonged to %d ms", left)
		}
	})
}

// P10: a dead cookie behind the one that is used is looked up once, and costs nothing as long as it is known.
func TestADeadCookieBehindTheUsedOneCostsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, app())
		used, _ := s.count(t, 1)
		for _, tombstone := range []bool{false, true} {
			dead, _ := s.count(t, 1)
			s.end(t, r, dead, tombstone)
			with(t, used, dead).get(s.URL+"/add").want(t, 200, "*")
			proxy.Forget()
			with(t, used, dead).get(s.URL+"/add").want(t, 200, "*")
			if n := proxy.RoundTrips(); n != 2 {
				t.Errorf("with a tombstone: %v: %d round trips, want 2: acquire and commit", tombstone, n)
			}
		}
	})
}

// A sibling domain plants a cookie of its own, which the browser sends first. After the login that cookie is dead,
// and the visitor's own counts. The response to a logout can remove neither the planted cookie nor its session, but
// neither does harm.
func TestAPlantedCookieDoesNotUndoTheLogin(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, welcoming())
		for _, ended := range []bool{false, true} {
			planted, _ := s.count(t, 1)
			if ended { // by its owner
				s.end(t, r, planted, true)
			}
			login := with(t, planted).navigate("POST", s.URL+"/login")
			login.want(t, 200, "")
			with(t, append(login.Cookies(), planted)...).get(s.URL+"/user").want(t, 200, "ann")
			both := with(t, append([]*http.Cookie{planted}, login.Cookies()...)...)
			both.get(s.URL+"/user").want(t, 200, "ann")
			redistest.Elapse(time.Minute) // nothing remembers the planted one any more
			both.get(s.URL+"/user").want(t, 200, "ann")
			both.get(s.URL+"/logout").want(t, 200, "")
			both.get(s.URL+"/user").want(t, 200, "")
			with(t, planted).get(s.URL+"/user").want(t, 200, "")
		}
	})
}

// At most eight cookies of the name are verified. So a sibling domain that plants eight of them
// hides the visitor's own, as SECURITY.md says.
func TestAtMostEightCookiesAreVerified(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		s := newSite(t, r.Pool(t, 4), middleware.Options{}, app())
		own, _ := s.count(t, 1)
		wellFormed := &http.Cookie{Name: "sid", Value: strings.Repeat("x", 120)}
		malformed := &http.Cookie{Name: "sid", Value: "forged!"}
		for n, want := range map[int]string{0: "1", 7: "1", 8: "0", 100: "0"} {
			var cookies []*http.Cookie
			for range n {
				cookies = append(cookies, malformed, wellFormed)
			}
			with(t, append(cookies, malformed, own)...).get(s.URL+"/get").want(t, 200, want)
		}
	})
}

// P8: If Redis falls silent while a request with eight cookies holds its session, the request does not wait for it eight
// times, but once for a look at another session, and once more for the commit, which takes at most 1⅛ Timeout.
func TestTheOtherCookiesAreNotWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		s := newSite(t, proxy.Pool(t, 4), middleware.Options{}, app())
		var cookies []*http.Cookie
		var others []string
		for range 8 {
			cookie, id := s.count(t, 1)
			cookies, others = append(cookies, cookie), append(others, recordOf(id))
		}
		others = others[1:]
		var silent atomic.Bool
		proxy.Inject(func(c redistest.Command) redistest.Fault {
			looks := slices.ContainsFunc(c.Args, func(key string) bool { return slices.Contains(others, key) })
			if looks || silent.Load() { // and the session is locked and read
				silent.Store(true)
				return redistest.Hang
			}
			return redistest.Pass
		})
		began := time.Now()
		with(t, cookies...).get(s.URL+"/add").want(t, 503, "*")
		if took, most := time.Since(began), steady.Timeout*17/8; took > most {
			t.Errorf("the answer took %v, want at most %v", took, most)
		}
		if !silent.Load() {
			t.Error("no other session was looked at")
		}
		proxy.Inject(nil)
		redistest.Elapse(time.Minute) // in which the lock is freed
	})
}

// ASVS 3.3: all patterns that New accepts, and the cookies that it makes of them.
var patterns = map[string]struct {
	o    http.Cookie
	want string // behind the value
}{
	"plain HTTP": {http.Cookie{Name: "sid"}, "; Path=/; HttpOnly; SameSite=Lax"},
	"strict":     {http.Cookie{Name: "__Host-id", Secure: true, SameSite: http.SameSiteStrictMode}, "; Path=/; HttpOnly; Secure; SameSite=Strict"},
	"browser's":  {http.Cookie{Name: "sid", SameSite: http.SameSiteDefaultMode}, "; Path=/; HttpOnly"},
	"subdomains": {http.Cookie{Name: "__Secure-id", Secure: true, Domain: "example.org"}, "; Path=/; Domain=example.org; HttpOnly; Secure; SameSite=Lax"},
	"part":       {http.Cookie{Name: "__Secure-id", Secure: true, Path: "/app"}, "; Path=/app; HttpOnly; Secure; SameSite=Lax"},
	"embedded":   {http.Cookie{Name: "__Host-id", Secure: true, SameSite: http.SameSiteNoneMode, Partitioned: true}, "; Path=/; HttpOnly; Secure; SameSite=None; Partitioned"},
	"all fields": {http.Cookie{Name: "mine", Path: "/app", MaxAge: 3600, SameSite: http.SameSiteStrictMode, Domain: "example.org"},
		"; Path=/app; Domain=example.org; Max-Age=3600; HttpOnly; SameSite=Strict"},
}

var maxAge = regexp.MustCompile(`; Max-Age=\d+`)

// ASVS 3.3.2, 3.3.4 and 7.4.1: HttpOnly always, and SameSite unless it is left to the
// browser. And a logout deletes the very cookie that was set: browsers keep one with
// another path or domain, and ignore a __Host- cookie without Secure.
func TestTheCookieIsDeletedAsItWasSet(t *testing.T) {
	t.Parallel()
	for name, p := range patterns {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{Keys: [][]byte{testKey}, Cookie: p.o})
			must(t, err)
			ask := func(path, cookie string) string {
				w := &recorder{header: http.Header{}}
				s.Handler(app()).ServeHTTP(w, as(request(http.MethodPost, cookie), path))
				return w.header.Get("Set-Cookie")
			}
			set := ask("/login", "")
			pair, _, _ := strings.Cut(set, ";")
			if strings.TrimPrefix(set, pair) != p.want {
				t.Errorf("it is set by %s, want %s", set, p.want)
			}
			name, _, _ := strings.Cut(pair, "=")
			want := name + "=" + strings.Replace(maxAge.ReplaceAllString(p.want, ""), "; HttpOnly", "; Max-Age=0; HttpOnly", 1)
			if got := ask("/logout", pair); got != want {
				t.Errorf("it is deleted by %s, want %s", got, want)
			}
		})
	}
}

// ASVS 3.3.5: Name and value fit into the 4096 bytes that browsers keep, whatever the name is.
func TestTheCookieFitsIntoABrowser(t *testing.T) {
	t.Parallel()
	st := store.New(redistest.Embedded(t).Pool(t, 4), store.Options{})
	var longest int
	for size := 3000; size <= 5000; size++ {
		s, err := middleware.New(st, cookie(http.Cookie{Name: strings.Repeat("n", size)}))
		if err != nil {
			if !strings.Contains(err.Error(), "Name") || len(err.Error()) > 300 {
				t.Fatal(err)
			}
			break
		}
		longest = size
		w := &recorder{header: http.Header{}}
		s.Handler(users(nil)).ServeHTTP(w, as(request(http.MethodPost, ""), "/login/ann")) // a user's cookie is longer
		pair, _, _ := strings.Cut(w.header.Get("Set-Cookie"), ";")
		if len(pair)-len("=") > 4096 || len(pair) < size+100 {
			t.Fatalf("with a name of %d bytes, it has %d", size, len(pair))
		}
	}
	if longest < 3000 || longest > 4000 {
		t.Errorf("the longest name has %d bytes", longest)
	}
}

// The cookie's name is signed, too: an application does not accept the cookie of
// another that has the same key.
func TestACookieOfAnotherNameIsForged(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		proxy := redistest.NewProxy(t, r)
		for _, c := range [][2]string{{"shop", "admin"}, {"a", "a|1"}, {"sid", "SID"}, {"sid", "__Host-sid"}} {
			shop := newSite(t, r.Pool(t, 4), middleware.Options{Cookie: http.Cookie{Name: c[0]}}, app())
			other := http.Cookie{Name: c[1], Secure: strings.HasPrefix(c[1], "__Host-")}
			admin := newSite(t, proxy.Pool(t, 4), middleware.Options{Cookie: other}, app())
			v := shop.visitor(t)
			v.get(shop.URL+"/get").want(t, 200, "1")
			theirs := &http.Cookie{Name: c[1], Value: v.cookies(shop)[0].Value}
			with(t, theirs).get(admin.URL+"/get").want(t, 200, "0")
			if proxy.Requests() > 0 {
				t.Errorf("%s for %s leads to Redis", c[0], c[1])
			}
		}
	})
}

// Two applications have the same key and cookie name, but different Prefixes. Each does not know the other's
// sessions, and does not adopt their IDs.
func TestASessionOfAnotherPrefixIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		shop := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Prefix: "shop:"}), middleware.Options{}, app())
		admin := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Prefix: "admin:"}), middleware.Options{}, app())
		v := shop.visitor(t)
		id := v.get(shop.URL + "/id").body
		shared := with(t, v.cookies(shop)...)
		shared.get(admin.URL+"/get").want(t, 200, "0")
		shared.get(admin.URL+"/add").want(t, 200, "1")
		if r.Exists(t, "admin:{"+id+"}") {
			t.Error("the ID was adopted")
		}
		shared.get(shop.URL+"/get").want(t, 200, "1")
	})
}

// Nothing in the options can end a header and begin another.
func TestACookieOptionCannotInjectAHeader(t *testing.T) {
	t.Parallel()
	st := store.New(&redis.Pool{}, store.Options{})
	for _, evil := range []string{"a\r\nX-Evil: 1", "a\nb", "a;Domain=evil.org", "a\x00", "a\x7f"} {
		for field, c := range map[string]http.Cookie{
			"Name":   {Name: evil},
			"Path":   {Name: "sid", Path: "/" + evil},
			"Domain": {Name: "sid", Domain: evil},
		} {
			if _, err := middleware.New(st, cookie(c)); err == nil {
				t.Errorf("%s %q is taken", field, evil)
			}
		}
	}
}
