package browser

import (
	"net/url"
	"testing"
)

// P4: a session that has ended locks no visitor out.

// Another process has ended the session, as "log out everywhere" does.
func TestASessionThatWasEndedFromElsewhere(t *testing.T) {
	t.Parallel()
	ended := func(t *testing.T) (*shop, *tab) {
		s, b := visit(t, opening{})
		b.logIn()
		s.end(t, idOf(b))
		s.forgetAnswers()
		return s, b
	}
	t.Run("the next page works", func(t *testing.T) {
		t.Parallel()
		s, b := ended(t)
		if status := b.press("#home"); status != 200 {
			t.Errorf("the page is a %d", status)
		}
		b.showsUser("")
		b.logIn()
		s.answered("GET /: 200 and a cookie", "POST /login: 303 and a cookie", "GET /: 200")
	})
	t.Run("a login works", func(t *testing.T) {
		t.Parallel()
		s, b := ended(t)
		b.logIn()
		s.answered("POST /login: 303 and a cookie", "GET /: 200")
	})
	t.Run("a fetch works, as a guest's", func(t *testing.T) {
		t.Parallel()
		s, b := ended(t)
		if status := js[int](b, `fetch('/cart', {method: 'POST'}).then(a => a.status)`); status != 200 {
			t.Errorf("the fetch is a %d, want 200", status)
		}
		b.press("#home")
		b.showsUser("")
		s.answered("POST /cart: 200 and a cookie", "GET /: 200")
	})
}

// If the session of a real browser has ended, each request that writes begins a new one. If its ID has only moved, as
// by a login whose response is still under way, requests in the background are refused: the browser is about to get
// another cookie. A request for a page that is shown begins a new session even then.
func TestWhatBeginsANewSession(t *testing.T) {
	t.Parallel()
	const shown, hidden = true, false
	for _, row := range []struct {
		name   string
		do     func(b *tab)
		method string
		shown  bool
	}{
		{"a link", func(b *tab) { b.click("#link") }, "GET", shown},
		{"a form", func(b *tab) { b.click("#write") }, "POST", shown},
		{"a script that leads to a page", script(`location.assign('/written')`), "GET", shown},
		{"a link, through a service worker", throughWorker, "GET", shown},
		{"a frame", element("iframe", `{src: '/written'}`), "GET", shown},
		{"fetch", script(`fetch('/written')`), "GET", hidden},
		{"fetch without CORS", script(`fetch('/written', {mode: 'no-cors'})`), "GET", hidden},
		{"XMLHttpRequest", script(`x = new XMLHttpRequest(), x.open('POST', '/written'), x.send()`), "POST", hidden},
		{"a beacon", script(`navigator.sendBeacon('/written', 'x')`), "POST", hidden},
		{"a picture", script(`new Image().src = '/written'`), "GET", hidden},
		{"a prefetch", element("link", `{rel: 'prefetch', href: '/written'}`), "GET", hidden},
		{"a speculative prefetch", speculation("prefetch", "/written"), "GET", hidden},
		{"a prerendered page", speculation("prerender", "/written"), "GET", hidden},
	} {
		for what, over := range map[string]func(*shop, *tab){
			"ended": func(s *shop, b *tab) { s.end(t, idOf(b)) },
			"moved": func(s *shop, b *tab) { s.post("/login", url.Values{"user": {"ann"}}, s.cookiesOf(b, "/account/")...) },
		} {
			t.Run(row.name+", "+what, func(t *testing.T) {
				t.Parallel()
				s, b := visit(t, opening{})
				over(s, b)
				s.forgetAnswers()

				after := s.stop(row.method+" /written", "after the sessions")
				after.letGo()
				row.do(b)
				r := after.wait()
				t.Logf("mode %q, destination %q, purpose %q", r.Header.Get("Sec-Fetch-Mode"),
					r.Header.Get("Sec-Fetch-Dest"), r.Header.Get("Sec-Purpose"))
				want := ": 200 and a cookie"
				if what == "moved" && !row.shown {
					want = ": 409"
				}
				s.answered(row.method + " /written" + want)
			})
		}
	}
}

// throughWorker follows a link whose request goes through a service worker of the shop.
func throughWorker(b *tab) {
	js[bool](b, `new Promise(controlled => {
		navigator.serviceWorker.oncontrollerchange = () => controlled(true);
		navigator.serviceWorker.register('/worker.js');
	})`)
	b.click("#link")
}

// script starts a script in the page, without waiting for it.
func script(text string) func(*tab) {
	return func(b *tab) { js[bool](b, `void (`+text+`), true`) }
}

// element adds an element to the page.
func element(name, properties string) func(*tab) {
	created := `Object.assign(document.createElement('` + name + `'), ` + properties + `)`
	return script(`document.body.append(` + created + `)`)
}

// speculation makes the browser load a page in advance.
func speculation(what, path string) func(*tab) {
	rules := `{"` + what + `": [{"source": "list", "urls": ["` + path + `"], "eagerness": "immediate"}]}`
	return element("script", `{type: 'speculationrules', textContent: '`+rules+`'}`)
}
