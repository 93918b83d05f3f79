package browser

import "testing"

// P11: after the logout, no page of the account is shown that Chromium has loaded in advance, if the program
// follows the guide. A logout that leads to another page needs nothing more. After a logout by fetch, from a page
// that stays, such a page is shown unless the response has cleared it. So this test can fail.
func TestAPageLoadedInAdvanceAfterTheLogout(t *testing.T) {
	t.Parallel()
	ways := map[string]func(b *tab){
		"link rel=prefetch": element("link", `{rel: 'prefetch', href: '/account/'}`),
		"prefetch":          speculation("prefetch", "/account/"),
		"prerender":         speculation("prerender", "/account/"),
	}
	for way, load := range ways {
		for logout, shown := range map[string]bool{
			"/logout":                   false, // by a form
			"/logout-by-fetch?clear=no": way != "link rel=prefetch",
			"/logout-by-fetch":          false,
		} {
			t.Run(way+", "+logout, func(t *testing.T) {
				t.Parallel()
				s, b := visit(t, opening{})
				b.logIn()
				loaded := s.stop("GET /account/", "after the sessions")
				loaded.letGo()
				load(b)
				loaded.wait()
				s.noStop("GET /account/", "after the sessions")
				if logout == "/logout" {
					b.press("#logout")
					b.showsUser("")
				} else {
					status := js[int](b, `fetch('`+logout+`', {method: 'POST'}).then(a => a.status)`)
					if status != 200 {
						t.Fatalf("the logout is a %d", status)
					}
				}
				b.press("#account")
				if got := js[string](b, `location.pathname + ' ' + document.body.dataset.user`); (got == "/account/ ann") != shown {
					t.Errorf("the link leads to %q", got)
				}
			})
		}
	}
}
