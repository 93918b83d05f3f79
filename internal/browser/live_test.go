package browser

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/chromedp/chromedp"
)

// twoDevices signs ann in from two browsers, and returns the pages of her devices.
func twoDevices(t *testing.T, page string) (laptop, phone *tab) {
	t.Helper()
	laptop, phone = openDemo(t, page, laptopScreen), openDemo(t, page, laptopScreen)
	phone.do(claims(iPhone))
	for _, b := range []*tab{laptop, phone} {
		b.signIn(page, "ann")
		b.shows(`#live[data-state="on"]`)
	}
	laptop.shows(".device:not([data-this])") // the phone's: from now on the list stays as it is
	return laptop, phone
}

// stays marks the page. The function that it returns checks that the tab still shows that page.
func (b *tab) stays() (check func()) {
	b.t.Helper()
	js[bool](b, `window.marked = true`)
	return func() {
		b.t.Helper()
		if !js[bool](b, `window.marked === true`) {
			b.t.Error("the page was loaded again")
		}
	}
}

// The page's live line goes out when its session is ended from another window, and the page offers to sign in
// again.
func TestTheLiveLineGoesOut(t *testing.T) {
	t.Parallel()
	page := demotest.Start(t).URL
	laptop, phone := twoDevices(t, page)
	if got := text(laptop, "#live"); got != "live – signed in as ann" {
		t.Errorf("the page says %q", got)
	}
	check := laptop.stays()
	laptop.do(chromedp.Focus(chromedp.CSS("#ask-end-all")))

	phone.press("#end-others")
	laptop.shows(`#live[data-state="out"]`)
	laptop.shows("#over")
	check()
	if got := text(laptop, "#live"); got != "signed out" {
		t.Errorf("the page says %q", got)
	}
	if follows := js[bool](laptop, `stream !== null`); follows {
		t.Error("the page still has a stream")
	}
	if at := js[string](laptop, `document.activeElement.id`); at != "name" {
		t.Errorf("the keyboard's focus is at %q", at)
	}
	phone.shows(`#live[data-state="on"]`)

	laptop.do(chromedp.SendKeys(chromedp.CSS("#name"), "ann"))
	laptop.press(".sign-in button")
	laptop.shows(`#live[data-state="on"]`)
	if over := js[bool](laptop, `document.querySelector('#over') !== null`); over {
		t.Error("the page still says that the session was ended")
	}
}

// A hidden page has no stream. When it is shown again, it reports what has happened meanwhile. If the server
// stops, the page says so, too.
func TestALivePageThatNobodySees(t *testing.T) {
	t.Parallel()
	demo := demotest.Start(t)
	laptop, phone := twoDevices(t, demo.URL)
	hide := func(hidden bool) {
		js[bool](laptop, fmt.Sprintf(`Object.defineProperty(document, 'hidden', {value: %v, configurable: true}),
			document.dispatchEvent(new Event('visibilitychange'))`, hidden))
	}
	check := laptop.stays()
	hide(true)
	if follows := js[bool](laptop, `stream !== null`); follows {
		t.Error("the page still has a stream")
	}
	phone.press("#end-others")
	hide(false)
	laptop.shows(`#live[data-state="out"]`)
	laptop.shows("#over")
	check()

	phone.shows(`#live[data-state="on"]`)
	demo.Signal(t, syscall.SIGTERM)
	phone.shows(`#live[data-state="away"]`)
}

// While Redis is away, an open page does not say that it is live. It does so again when Redis is back.
func TestTheLiveLineWithoutRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Real(t)
	page := demotest.Start(t, "-redis", redis.URL).URL
	b := openDemo(t, page, laptopScreen)
	b.signIn(page, "ann")
	b.shows(`#live[data-state="on"]`)
	check := b.stays()
	redis.Pause(t)
	b.shows(`#live[data-state="away"]`)
	redis.Resume(t)
	b.shows(`#live[data-state="on"]`)
	check()
}

// The list of an open page shows devices as they come and go.
func TestTheLiveListOfDevices(t *testing.T) {
	t.Parallel()
	page := demotest.Start(t).URL
	laptop, phone := openDemo(t, page, laptopScreen), openDemo(t, page, laptopScreen)
	phone.do(claims(iPhone))
	laptop.signIn(page, "ann")
	check := laptop.stays()
	laptop.do(chromedp.Focus(chromedp.CSS("#reload")))
	phone.signIn(page, "ann")
	laptop.shows(".device:not([data-this])")
	if got := laptop.devices(); !slices.Equal(got, []string{"Safari on iPhone", "Chrome on Linux this one"}) {
		t.Errorf("the laptop shows %q", got)
	}
	if at := js[string](laptop, `document.activeElement.id`); at != "reload" {
		t.Errorf("the keyboard's focus is at %q", at)
	}
	names := js[[]string](laptop, `[...document.querySelectorAll('.device button')].map(b => b.ariaLabel)`)
	if want := []string{"End Safari on iPhone", "Sign out here: this window, Chrome on Linux"}; !slices.Equal(names, want) {
		t.Errorf("the buttons are %q, want %q", names, want)
	}
	phone.press(".device[data-this] button")
	laptop.shows(".device:only-child")
	laptop.shows(`#live[data-state="on"]`)
	check()
}

// The first page shows who is signed in. If the session was ended elsewhere, the page says so at the next click.
// The counter continues at once, also after a reload.
func TestDevicesAndTheCounter(t *testing.T) {
	t.Parallel()
	page := demotest.Start(t).URL
	laptop, phone := twoDevices(t, page)
	laptop.open(page)
	says := func(selector, want string) {
		t.Helper()
		laptop.shows("#count")
		laptop.until(fmt.Sprintf("document.querySelector('%s').textContent.trim() === '%s'", selector, want))
	}
	says("#who", "signed in as ann")
	for _, want := range []string{"1", "2"} {
		laptop.do(chromedp.Click(chromedp.CSS("#incr")))
		says("#count", want)
	}
	phone.press("#end-others")
	laptop.do(chromedp.Click(chromedp.CSS("#incr")))
	says("#session-status", "You are not signed in any more. You go on as a guest, with a new counter.")
	says("#count", "1")
	says("#who", "")
	laptop.open(page)
	says("#count", "1")
	laptop.do(chromedp.Click(chromedp.CSS("#incr")))
	says("#count", "2")
	laptop.press("nav a")
	laptop.shows("#over")
}

// Both pages fit a phone, whatever they show, and everything that can be tapped is large enough for a finger.
func TestDevicesAndCounterFitAPhone(t *testing.T) {
	for _, width := range []int64{320, 390} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprint(width, "-", scheme), func(t *testing.T) {
				t.Parallel()
				page := demotest.Start(t).URL
				b, other := openDemo(t, page, screen{"", width, 800, scheme}), newVisitor(t)
				b.suitsAFinger("home")
				b.press("nav a")
				b.shows("#name")
				b.suitsAFinger("sign-in")
				for _, name := range []string{"ann", strings.Repeat("W", 64)} {
					b.signIn(page, name)
					other.signIn(page, name)
					b.shows(".device:not([data-this])")
					b.suitsAFinger("devices-" + name[:1])
					b.click("#ask-end-all")
					b.shows("#sure:popover-open")
					b.suitsAFinger("sure-" + name[:1])
					b.open(page)
					b.shows("#who:not(:empty)")
					if name == "ann" { // only once, since it takes a while
						b.fire()
					}
					b.suitsAFinger("home-" + name[:1])
					b.press("nav a")
					b.shows(`#live[data-state="on"]`)
					other.shows(".device:not([data-this])")
					other.endAll() // so that the browser can sign in as the next user
					b.shows("#over")
					b.suitsAFinger("over-" + name[:1])
				}
			})
		}
	}
}

// suitsAFinger checks that the page is not too wide, and that links, buttons and fields are at least 44 pixels high and
// wide.
func (b *tab) suitsAFinger(name string) {
	b.t.Helper()
	b.fits(name)
	small := js[[]string](b, `[...document.querySelectorAll('a, button, input')].filter(e => e.checkVisibility())
		.map(e => [e, e.getBoundingClientRect()]).filter(([, r]) => r.height < 44 || r.width < 44).map(([e, r]) => e.outerHTML + ' ' + r.width + 'x' + r.height)`)
	if len(small) > 0 {
		b.t.Errorf("%s: too small for a finger: %q", name, small)
	}
}
