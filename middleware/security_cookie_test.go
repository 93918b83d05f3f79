package middleware_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// ASVS 3.3: all patterns that New takes, and what it makes of them.
var patterns = map[string]struct {
	o    http.Cookie
	want string // behind the value
}{
	"default":    {http.Cookie{}, "; Path=/; HttpOnly; Secure; SameSite=Lax"},
	"plain HTTP": {http.Cookie{Name: "sid"}, "; Path=/; HttpOnly; SameSite=Lax"},
	"strict":     {http.Cookie{Name: "__Host-id", Secure: true, SameSite: http.SameSiteStrictMode}, "; Path=/; HttpOnly; Secure; SameSite=Strict"},
	"browser's":  {http.Cookie{Name: "sid", SameSite: http.SameSiteDefaultMode}, "; Path=/; HttpOnly"},
	"subdomains": {http.Cookie{Name: "__Secure-id", Secure: true, Domain: "example.org"}, "; Path=/; Domain=example.org; HttpOnly; Secure; SameSite=Lax"},
	"part":       {http.Cookie{Name: "__Secure-id", Secure: true, Path: "/app"}, "; Path=/app; HttpOnly; Secure; SameSite=Lax"},
	"embedded":   {http.Cookie{Name: "__Host-id", Secure: true, SameSite: http.SameSiteNoneMode, Partitioned: true}, "; Path=/; HttpOnly; Secure; SameSite=None; Partitioned"},
	"lasting":    {http.Cookie{Name: "sid", MaxAge: 60}, "; Path=/; Max-Age=60; HttpOnly; SameSite=Lax"},
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

// ASVS 3.3.5: name and value fit into the 4096 bytes that browsers keep, whatever the
// name.
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
		s.Handler(users(nil)).ServeHTTP(w, as(request(http.MethodPost, ""), "/login/ann")) // a user's is longer
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
			v := newVisitor(t)
			v.get(shop.URL+"/add").want(t, 200, "1")
			v.get(shop.URL+"/get").want(t, 200, "1")
			theirs := &http.Cookie{Name: c[1], Value: v.cookies(shop)[0].Value}
			with(t, theirs).get(admin.URL+"/get").want(t, 200, "0")
			if proxy.Requests() > 0 {
				t.Errorf("%s for %s leads to Redis", c[0], c[1])
			}
		}
	})
}

// Two applications with the same key and cookie name, but different Prefixes: the
// session of the one is unknown to the other, and not adopted.
func TestASessionOfAnotherPrefixIsUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		shop := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Prefix: "shop:"}), middleware.Options{}, app())
		admin := newSiteOn(t, store.New(r.Pool(t, 4), store.Options{Prefix: "admin:"}), middleware.Options{}, app())
		v := newVisitor(t)
		v.get(shop.URL+"/add").want(t, 200, "1")
		id := v.get(shop.URL + "/id").body
		shared := with(t, v.cookies(shop)...)
		shared.get(admin.URL+"/get").want(t, 200, "0")
		shared.get(admin.URL+"/add").want(t, 200, "1")
		if r.Exists(t, "admin:{"+id+"}") {
			t.Error("the id was adopted")
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
