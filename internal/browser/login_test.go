package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// P4: a login does not depend on the previous session. So it succeeds however often the visitor tries, even if
// responses were lost.

// At the second click the browser cancels the first request, and so loses the cookie of that login, which
// succeeded.
func TestADoubleClickOnLogInIsALogin(t *testing.T) {
	t.Parallel()
	s, b := visit(t, opening{})
	before, check := s.stop("POST /login", "before the sessions"), s.stop("POST /login", "in the handler")
	before.letGo()
	before.letGo()

	button := b.find("#login")
	b.clickAt(button)
	before.wait()
	first := check.wait()
	b.clickAt(button)
	before.wait()
	hungUp(t, first)
	check.letGo()
	check.wait()
	check.letGo()

	b.showsUser("ann")
	s.answered("GET /: 200 and a cookie",
		"POST /login: 303 and a cookie", "POST /login: 303 and a cookie", "GET /: 200")
	b.press("#home")
	b.showsUser("ann")
}

func TestTheStopButtonDuringALogin(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"#login", "#home"} {
		t.Run(next, func(t *testing.T) {
			t.Parallel()
			s, b := visit(t, opening{})
			check, after := s.stop("POST /login", "in the handler"), s.stop("POST /login", "after the sessions")

			b.click("#login")
			first := check.wait()
			b.do(chromedp.Stop())
			hungUp(t, first)
			check.letGo()
			after.wait() // the login is saved, but no browser has its cookie
			after.letGo()

			check.letGo() // the next login may pass
			after.letGo()
			if status := b.press(next); status != 200 {
				t.Errorf("%s leads to a %d", next, status)
			}
			if next == "#home" {
				b.showsUser("")
				b.press("#login")
			}
			b.showsUser("ann")
			s.neverAnswered("409")
		})
	}
}

// The response to the login is lost, as for a phone in a tunnel.
func TestTheLostAnswerOfALogin(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(b *tab, url string){
		"the page is reloaded":  func(b *tab, url string) { b.leads(func() { b.do(chromedp.Reload()) }) },
		"the shop is opened":    func(b *tab, url string) { b.open(url) },
		"the visitor goes back": func(b *tab, url string) { b.back() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, b := visit(t, opening{})
			s.losesLogins.Store(true)
			if status := b.press("#login"); status != 0 {
				t.Fatalf("the answer was not lost: it is a %d", status)
			}
			s.losesLogins.Store(false)

			next(b, s.url)
			b.shows("#login")
			if js[string](b, `document.body.dataset.user`) == "" { // next was no second login
				b.press("#login")
			}
			b.showsUser("ann")
			b.press("#home")
			b.showsUser("ann")
			s.neverAnswered("409")
		})
	}
}

// A form on another site that logs the visitor in to the attacker's account is refused by
// http.CrossOriginProtection, as the page about logins recommends. SameSite does not help: a login needs
// no cookie.
func TestAFormOnAnotherSiteLogsNobodyIn(t *testing.T) {
	t.Parallel()
	for name, unprotected := range map[string]bool{"protected": false, "unprotected": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, b := visit(t, opening{unprotected: unprotected})
			b.logIn()

			b.open(trap(t, s.url+"/login"))
			status := b.press("#trap")
			if !unprotected && status != http.StatusForbidden {
				t.Errorf("the form leads to a %d, want 403", status)
			}
			b.open(s.url)
			if unprotected { // shows what the protection is for
				b.showsUser("mallory")
			} else {
				b.showsUser("ann")
			}
		})
	}
}

// trap returns the address of a page on another site, with a form for the shop.
func trap(t *testing.T, action string) (address string) {
	t.Helper()
	foreign := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<!DOCTYPE html><link rel="icon" href="data:,"><form method="post" action="%s">
			<input type="hidden" name="user" value="mallory"><button id="trap">You have won</button></form>`, action)
	}
	return strings.Replace(named(serve(t, http.HandlerFunc(foreign), false, nil)), host, "foreign.localhost", 1)
}
