package browser

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// P4: no response takes a login away, however late it arrives, except those of another login, of a renewal and of
// a logout.

const often = 20

// The visitor's first page has a script that writes. Its request was sent before there was any cookie, and is
// answered after the login.
func TestTheFirstScriptDoesNotUndoALogin(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, browser string) {
		s, b := openShop(t, opening{}), newVisitorIn(t, browser)
		script := s.stop("POST /cart", "before the sessions")
		b.open(s.url + "/account/")
		for range often {
			js[bool](b, `void fetch('/cart', {method: 'POST', keepalive: true}), true`)
			wantNoCookie(t, script)
			b.logIn()
			b.getsCookie(script.letGo)
			b.staysLoggedIn(s)
		}
	})
}

// The logout makes a page send a beacon as it is left. The beacon has no cookie, and is answered after the next
// login.
func TestABeaconOfThePageBeforeDoesNotUndoALogin(t *testing.T) {
	beacons := []string{
		`navigator.sendBeacon('/cart')`,
		`fetch('/cart', {method: 'POST', keepalive: true})`,
	}
	inEachBrowser(t, func(t *testing.T, browser string) {
		s, b := openShop(t, opening{}), newVisitorIn(t, browser)
		beacon := s.stop("POST /cart", "before the sessions")
		b.open(s.url + "/account/")
		for i := range often {
			b.logIn()
			b.open(s.url + "/account/")
			js[bool](b, `addEventListener('pagehide', () => `+beacons[i%len(beacons)]+`), true`)
			b.press("#logout")
			wantNoCookie(t, beacon)
			b.logIn()
			b.getsCookie(beacon.letGo)
			b.staysLoggedIn(s)
		}
	})
}

// wantNoCookie waits for a request, which must have no cookie.
func wantNoCookie(t *testing.T, at *stop) {
	t.Helper()
	if sent := at.wait().Cookies(); len(sent) > 0 {
		t.Fatalf("the script sent %d cookies, so this test shows nothing", len(sent))
	}
}

// staysLoggedIn checks that ann is logged in, and logs her out, so that no cookie is left.
func (b *tab) staysLoggedIn(s *shop) {
	b.t.Helper()
	b.open(s.url + "/account/")
	b.showsUser("ann")
	b.press("#logout")
	b.showsUser("")
	b.keepsNoCookie()
}

// keepsNoCookie waits until the browser has no cookie. Firefox may keep a deleted one for up to a second, without its
// value.
func (b *tab) keepsNoCookie() {
	b.t.Helper()
	for begun := time.Now(); ; {
		kept := b.kept()
		if len(kept) == 0 {
			return
		}
		if time.Since(begun) > patience {
			b.t.Fatalf("the browser keeps %v", kept)
		}
	}
}

// P4: mallory lets a shared browser remember the login. Then ann logs in there without that, and her login ends
// when the browser is closed.
func TestRememberMeIsNotInherited(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, browser string) {
		_, b := visitIn(t, browser, opening{})
		lasting := func() (names []string) {
			for _, c := range b.kept() {
				if c.lasts {
					names = append(names, c.name)
				}
			}
			return names
		}
		js[string](b, `document.querySelector('[name=user]').value = 'mallory'`)
		b.press("#login-for-long")
		b.showsUser("mallory")
		if got := lasting(); !slices.Equal(got, []string{"session-login"}) {
			t.Errorf("%q outlast the browser after the login of mallory, want the member's cookie", got)
		}
		b.logIn()
		if got := lasting(); len(got) > 0 {
			t.Errorf("%s outlasts the browser after the login of ann", strings.Join(got, " and "))
		}
	})
}
