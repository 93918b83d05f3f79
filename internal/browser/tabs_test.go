package browser

import (
	"slices"
	"testing"
)

// P4: one tab ends the session that another tab shares.

// Requests of the other tab wait for the logout, if they were sent before it, with the cookie of the session that
// ends.
func TestALogoutInAnotherTab(t *testing.T) {
	t.Parallel()
	t.Run("then a fetch", func(t *testing.T) {
		t.Parallel()
		s, b, other := twoTabs(t, true)

		logout := s.stop("POST /logout", "in the handler")
		other.click("#logout")
		logout.wait()
		status := b.fetchLate(s, logout, func() { other.showsUser("") })
		if status != 200 {
			t.Errorf("the fetch is a %d, want 200", status)
		}
		s.answered("POST /logout: 303 and a cookie", "POST /cart: 200 and a cookie", "GET /: 200 and a cookie")
		b.press("#home")
		b.showsUser("")
	})
	t.Run("then a navigation", func(t *testing.T) {
		t.Parallel()
		s, b, other := twoTabs(t, true)

		logout, before := s.stop("POST /logout", "in the handler"), s.stop("GET /", "before the sessions")
		other.click("#logout")
		logout.wait()
		b.click("#home")
		before.wait()
		before.letGo()
		before.letGo() // the request to which the logout leads
		logout.letGo()
		b.showsUser("")
		other.showsUser("")

		before.letGo() // the request to which the login leads
		b.logIn()
		s.neverAnswered("409")
	})
}

// A login moves the session of a fetch. The fetch is refused, and does not undo the login, although its response
// arrives later.
func TestALoginInAnotherTab(t *testing.T) {
	t.Parallel()
	s, b, other := twoTabs(t, false)

	login := s.stop("POST /login", "in the handler")
	other.click("#login")
	login.wait()
	status := b.fetchLate(s, login, func() { other.showsUser("ann") })
	if status != 409 {
		t.Errorf("the fetch is a %d, want 409", status)
	}
	s.answered("POST /login: 303 and a cookie", "POST /cart: 409", "GET /: 200")
	for _, tab := range []*tab{b, other} {
		tab.press("#home")
		tab.showsUser("ann")
	}
}

// In one tab a visitor goes to a page that writes, and logs in in another tab meanwhile. The page begins a guest's
// session. The guest's cookie does not replace the member's, whichever response arrives last.
func TestANavigationThatCrossesALogin(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"the login", "the navigation"} {
		t.Run(last+" is answered last", func(t *testing.T) {
			t.Parallel()
			s, b, other := twoTabs(t, false)

			login := s.stop("POST /login", "in the handler")
			answered := s.stop("POST /login", "after the sessions")
			before := s.stop("GET /written", "before the sessions")
			after := s.stop("GET /written", "after the sessions")
			other.click("#login")
			login.wait()
			b.click("#link")
			before.wait() // its cookie is from before the login
			before.letGo()
			login.letGo()
			answered.wait()
			after.wait()
			arrive := []func(){
				func() { after.letGo(); b.shows("#written") },
				func() { answered.letGo(); other.showsUser("ann") },
			}
			if last == "the navigation" {
				slices.Reverse(arrive)
			}
			for _, answer := range arrive {
				answer()
			}
			s.answered("POST /login: 303 and a cookie", "GET /written: 200 and a cookie", "GET /: 200")

			for _, tab := range []*tab{b, other} {
				tab.open(s.url)
				tab.showsUser("ann")
			}
		})
	}
}

// fetchLate sends a fetch, with the current cookie, while another request holds the session. It then
// releases that request, and makes the response to the fetch arrive after done. It returns the status of
// the fetch.
func (b *tab) fetchLate(s *shop, holder *stop, done func()) (status int) {
	b.t.Helper()
	before, after := s.stop("POST /cart", "before the sessions"), s.stop("POST /cart", "after the sessions")
	js[bool](b, `window.adding = fetch('/cart', {method: 'POST'}).then(a => a.status), true`)
	before.wait()
	before.letGo()
	holder.letGo()
	done()
	after.wait()
	after.letGo()
	return js[int](b, `window.adding`)
}
