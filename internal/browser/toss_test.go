package browser

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A sibling domain can set cookies for the shop's domain, unless their name begins with __Host-. The shop
// gets both cookies: the one with the longer path first, and then the older one.

// A genuine cookie whose session has ended does not hide the visitor's own cookie.
func TestATossedCookieThatIsDeadShutsNobodyOut(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(*shop, *http.Cookie){
		"ended":   func(s *shop, c *http.Cookie) { s.post("/logout", nil, c) },
		"unknown": func(s *shop, c *http.Cookie) { s.redis.Do(s.t, "FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t, opening{})
			tossed := s.login("mallory")
			kill(s, tossed)
			b := newVisitor(t)
			b.open(toss(t, tossed, "/", false))
			b.open(s.url)
			b.logIn()
			b.press("#home")
			b.showsUser("ann")
			if n := len(s.cookiesOf(b, "/account/")); n != 2 {
				t.Errorf("the browser sends %d cookies, want the tossed one and its own", n)
			}
			b.press("#logout")
			b.showsUser("")
		})
	}
}

// If the browser sends a live cookie first, that one counts: the visitor sees the attacker's account. The log
// reports that, and __Host- is the defence.
func TestATossedCookieThatIsAliveIsReported(t *testing.T) {
	t.Parallel()
	s := openShop(t, opening{})
	tossed := s.login("mallory")
	b := newVisitor(t)
	b.open(toss(t, tossed, "/account/", false))
	b.open(s.url)
	b.logIn()
	own := idOf(b)
	if strings.Contains(s.log.String(), "level=WARN") {
		t.Errorf("log:\n%s", s.log)
	}

	b.open(s.url + "/account/")
	b.showsUser("mallory")
	foreign := idOf(b)
	if len(s.log.Lines("level=WARN", own, foreign)) == 0 {
		t.Errorf("the log does not name both %s and %s:\n%s", foreign, own, s.log)
	}
	b.open(s.url)
	b.showsUser("ann")
}

// With __Host-, which is the default, the browser does not accept the cookie from a sibling.
func TestACookieWithHostInItsNameCannotBeTossed(t *testing.T) {
	t.Parallel()
	s := openShop(t, opening{tls: true})
	tossed := s.login("mallory")
	b := newVisitor(t)
	b.open(toss(t, tossed, "/", true))
	b.open(toss(t, tossed, "/account/", true))
	b.open(s.url)
	b.logIn()
	b.open(s.url + "/account/")
	b.showsUser("ann")
	if n := len(s.cookiesOf(b, "/account/")); n != 1 {
		t.Errorf("the browser sends %d cookies, want its own", n)
	}
}

// toss returns the address of a page, on a sibling domain, that sets the cookie for the shop.
func toss(t *testing.T, c *http.Cookie, path string, tls bool) (address string) {
	t.Helper()
	sibling := func(w http.ResponseWriter, r *http.Request) {
		tossed := *c
		tossed.Domain, tossed.Path = host, path
		http.SetCookie(w, &tossed)
		fmt.Fprint(w, "<p>Nothing to see here.</p>")
	}
	return strings.Replace(named(serve(t, http.HandlerFunc(sibling), tls, nil)), host, "sibling."+host, 1)
}

// login logs the attacker in, from another browser, and returns the attacker's cookie.
func (s *shop) login(user string) *http.Cookie {
	s.t.Helper()
	for _, c := range s.post("/login", url.Values{"user": {user}}).Cookies() {
		if strings.HasSuffix(c.Name, "-login") { // the other one is deleted
			return c
		}
	}
	s.t.Fatal("the login sets no member's cookie")
	return nil
}

func (s *shop) post(path string, form url.Values, cookies ...*http.Cookie) *http.Response {
	s.t.Helper()
	body := strings.NewReader(form.Encode())
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.direct+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	res, err := s.client.Transport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("POST %s: %s", path, res.Status)
	}
	return res
}

// cookiesOf returns the cookies that the tab sends to a page.
func (s *shop) cookiesOf(b *tab, path string) []*http.Cookie {
	s.t.Helper()
	before := s.stop("GET "+path, "before the sessions")
	defer s.noStop("GET "+path, "before the sessions")
	before.letGo()
	b.open(s.url + path)
	return before.wait().Cookies()
}
