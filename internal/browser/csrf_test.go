package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A form on another site that logs the visitor in to the attacker's account is refused by
// http.CrossOriginProtection, as the page about logins has it. SameSite does not help: a login
// needs no cookie.
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
			if unprotected { // so that this shows what the protection is for
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
