package browser

import (
	"os"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
)

// openLibrary shows a visitor the page with a library, and waits until the library runs.
func openLibrary(t *testing.T, browser, library string) (s *shop, b *tab, url string) {
	t.Helper()
	if _, err := os.Stat("../../bin/npm"); err != nil {
		t.Fatal("there are no libraries: make e2e gets them")
	}
	s, b = openShop(t, opening{options: func(o *middleware.Options) { o.OnError = answerError }}), newVisitorIn(t, browser)
	url = s.url + "/by/" + library + "/"
	b.open(url)
	switch library {
	case "turbo":
		b.until(`window.Turbo?.session.started`)
	case "worker":
		b.until(`navigator.serviceWorker.controller`)
	}
	return s, b, url
}

// wants waits until the page shows this user, message and count.
func (b *tab) wants(user, message, count string) {
	b.t.Helper()
	b.until(`document.querySelector('main')?.dataset.user === '` + user + `' &&
		message.textContent === '` + message + `' && document.querySelector('#count').textContent === '` + count + `'`)
}

// P4: these are the pages that a visitor sees after the session has ended, with each library.
func TestLibrariesAfterTheEnd(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, browser string) {
		for library := range libraries {
			t.Run(library, func(t *testing.T) {
				t.Parallel()
				s, b, url := openLibrary(t, browser, library)
				for name, end := range map[string]func(){
					"ended":   func() { s.end(t, js[string](b, `document.querySelector('main').dataset.session`)) },
					"expired": func() { s.redis.Do(t, "FLUSHALL") },
				} {
					for _, step := range []struct {
						name, message, count string
						do                   func()
					}{
						{"what guests may do, works", "", "1", func() { b.click("#add") }},
						{"what members may do, leads to the login", "Please log in.", "0", func() { b.click("#order") }},
						{"a wrong password is reported", "Wrong password.", "0", func() {
							js[string](b, `document.querySelector('[name=password]').value = 'wrong'`)
							b.click("#login")
						}},
					} {
						t.Log(name, step.name)
						s.redis.Do(t, "FLUSHALL")
						b.open(url)
						b.click("#login")
						b.wants("ann", "", "0")
						b.open(url)
						end()
						step.do()
						b.wants("", step.message, step.count)
					}
				}
			})
		}
	})
}

// P4: two clicks on "Log in" log the visitor in.
func TestLibrariesWithADoubleClick(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, browser string) {
		for library := range libraries {
			t.Run(library, func(t *testing.T) {
				t.Parallel()
				_, b, _ := openLibrary(t, browser, library)
				at := b.find("#login")
				if err := b.mouse(0, at, at); err != nil {
					t.Fatal(err)
				}
				b.wants("ann", "", "0")
			})
		}
	})
}

// P4: a write in the background that crosses a login in another tab is refused. Then the page is loaded again, or
// a script tries once more.
func TestLibrariesThatCrossALogin(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, browser string) {
		for library, count := range map[string]string{"htmx": "1", "turbo": "1", "script": "2", "worker": "1", "plain": "1"} {
			t.Run(library, func(t *testing.T) {
				t.Parallel()
				s, b, url := openLibrary(t, browser, library)
				b.click("#add")
				b.wants("", "", "1")
				other := b.another()
				other.open(url)
				add := s.stop("POST /by/"+library+"/add", "before the sessions")
				b.click("#add")
				add.wait()
				other.click("#login")
				other.wants("ann", "", "1")
				add.letGo()
				add.letGo() // and the script's second try
				b.wants("ann", "", count)
			})
		}
	})
}
