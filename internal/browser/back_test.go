package browser

import (
	"strings"
	"testing"
)

// P11: after the logout, Back shows nothing of the account, since a browser keeps no page that is no-store. It
// does show a page that the handler allows to be kept. So this test can fail.
func TestBackAfterTheLogout(t *testing.T) {
	for control, kept := range map[string]bool{"": false, "private": true} {
		t.Run("Cache-Control "+control, func(t *testing.T) {
			inEachBrowser(t, func(t *testing.T, browser string) {
				s, b := visitIn(t, browser, opening{})
				b.logIn()
				b.open(s.url + "/account/?cache=" + control)
				b.shows("#secret")
				b.press("#logout")
				b.showsUser("")
				b.leads(b.back)
				shown := js[string](b, `location.search + document.body.dataset.kept + document.body.textContent`)
				if strings.Contains(shown, "What only ann may see") != kept || !strings.HasPrefix(shown, "?cache=") {
					t.Errorf("Back shows: %s", shown)
				}
			})
		})
	}
}
