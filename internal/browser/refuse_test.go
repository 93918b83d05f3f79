package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
)

// P4: with RefuseLogin a double click on "Log in" does not lock the visitor out. The browser drops the first
// response. The session whose cookie it had gives way to the session of the second response.
func TestADoubleClickWithRefuseLogin(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, browser string) {
		s := openShop(t, opening{options: func(o *middleware.Options) { o.MaxSessions, o.RefuseLogin = 1, true }})
		s.work = 100 * time.Millisecond
		b := newVisitorIn(t, browser)
		for _, apart := range []time.Duration{0, 30, 60, 90} {
			for i := range often {
				s.redis.Do(t, "FLUSHALL")
				b.open(s.url + "/account/")
				button := b.find("#login")
				if err := b.mouse(apart*time.Millisecond, button, button); err != nil {
					t.Fatal(err)
				}
				b.until(`['/', '/login'].includes(location.pathname) && ` + pageEnded) // otherwise it is between two pages
				if status := b.status(); status != 200 {
					t.Fatalf("after %d clicks %d ms apart: the page is a %d", i, apart, status)
				}
				b.showsUser("ann")
				b.hasOneSession(s, fmt.Sprintf("%d ms apart", apart))
			}
		}
	})
}

// hasOneSession waits until ann has only the session of this browser. A login whose response the browser has
// dropped may still be under way.
func (b *tab) hasOneSession(s *shop, when string) {
	b.t.Helper()
	for begun := time.Now(); ; {
		b.open(s.url + "/account/")
		b.showsUser("ann")
		list, err := s.sessions.List(b.t.Context(), "ann")
		if err != nil {
			b.t.Fatal(err)
		}
		if len(list) == 1 && list[0].ID == idOf(b) {
			return
		}
		if time.Since(begun) > patience {
			b.t.Fatalf("%s: ann has the sessions %v", when, list)
		}
	}
}
