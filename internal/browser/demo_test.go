package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A screen is the size of a visitor's screen, with the preferred colours.
type screen struct {
	name          string
	width, height int64
	scheme        string
}

// openDemo shows the demo to a visitor. At the end of the test, its page must have loaded nothing from another
// host, and had no error.
func openDemo(t *testing.T, page string, on screen) *tab {
	t.Helper()
	b := newVisitor(t)
	var mu sync.Mutex
	var complaints []string // guarded by mu
	err := chromedp.Listen(b.ctx(), func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" {
				complaints = append(complaints, fmt.Sprint(e.Args))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(on.width, on.height), prefers(on.scheme))
	b.open(page)
	t.Cleanup(func() {
		for _, loaded := range js[[]string](b, `performance.getEntriesByType('resource').map(e => e.name)`) {
			if !strings.HasPrefix(loaded, page) && !strings.HasPrefix(loaded, "data:") {
				t.Errorf("the page loaded %s", loaded)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(complaints) > 0 {
			t.Errorf("the page has errors: %v", complaints)
		}
	})
	return b
}

func text(b *tab, selector string) string {
	b.t.Helper()
	return strings.TrimSpace(js[string](b, "document.querySelector('"+selector+"').textContent"))
}

// prefers makes the browser report preferred colours.
func prefers(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// fire presses the button and waits for the result.
func (b *tab) fire() {
	b.t.Helper()
	b.click("#fire")
	b.shows(`body[data-run="done"]`)
}

// TestThePageShowsBothWays presses the button and reads what a visitor would.
func TestThePageShowsBothWays(t *testing.T) {
	for _, screen := range []screen{{"desktop-light", 1200, 900, "light"}, {"phone-dark", 375, 800, "dark"}} {
		t.Run(screen.name, func(t *testing.T) {
			b := openDemo(t, demotest.Start(t).URL, screen)
			b.fire()
			b.fits(screen.name)
			b.until(`document.getAnimations().length === 0`)
			b.keep(screen.name+"-grids", chromedp.Screenshot(chromedp.CSS(".panels")))

			none, err := strconv.Atoi(text(b, "#none [data-kept]"))
			if err != nil || none >= 100 {
				t.Errorf("without the lock the page shows %d of 100 (%v): nothing was lost", none, err)
			}
			if kept, lost := text(b, "#lock [data-kept]"), text(b, "#lock [data-lost]"); kept != "100" || lost != "none" {
				t.Errorf("with the lock the page shows %q of 100, and %q as lost", kept, lost)
			}
			named := strings.Count(text(b, "#none [data-lost]"), "p")
			marked := js[int](b, `document.querySelectorAll('#none .cell[data-state=lost]').length`)
			if named != 100-none || marked != 100-none {
				t.Errorf("%d were lost; the page names %d and marks %d", 100-none, named, marked)
			}
			if n := js[int](b, `document.querySelectorAll('.cell').length`); n != 200 {
				t.Errorf("%d cells, want 200", n)
			}
		})
	}
}

// Without Redis the page says once that the visitor can try again.
func TestThePageWithoutRedis(t *testing.T) {
	redis := redistest.Real(t)
	b := openDemo(t, demotest.Start(t, "-redis", redis.URL).URL, laptopScreen)
	redis.Stop(t)
	b.click("#fire")
	b.shows(`body[data-run="failed"]`)
	if says := text(b, "#status"); strings.Count(says, "503") != 2 || strings.Count(says, "try again") != 1 {
		t.Errorf("the page says %q", says)
	}
}

// A run in another window empties the session that both windows share. The page does not count that as lost: it says
// that there is no result.
func TestARunInAnotherWindowIsNoLoss(t *testing.T) {
	b := openDemo(t, demotest.Start(t).URL, laptopScreen)
	js[bool](b, `(() => {
		const send = window.fetch;
		let sets = 0;
		window.fetch = async (path, options) => {
			if (path === 'compare/lock/set' && ++sets === 50) await send('compare/lock/reset', { method: 'POST' });
			return send(path, options);
		};
		return true;
	})()`)
	b.click("#fire")
	b.shows(`body[data-run="failed"]`)
	if says := text(b, "#status"); !strings.Contains(says, "With the lock: no result (the session was emptied") {
		t.Errorf("the page says %q", says)
	}
	if lost := js[int](b, `document.querySelectorAll('#lock .cell[data-state=lost]').length`); lost > 0 {
		t.Errorf("the page shows %d as lost with the lock", lost)
	}
	if kept := text(b, "#none [data-kept]"); kept == "–" {
		t.Error("the run without a lock has no result")
	}
}

// The page waits for a request as long as all of them work one after another, however long that is.
func TestThePageWaitsForTheWork(t *testing.T) {
	b := openDemo(t, demotest.Start(t, "-work", "3s").URL, laptopScreen)
	js[bool](b, `(() => {
		const timeout = AbortSignal.timeout.bind(AbortSignal);
		AbortSignal.timeout = (ms) => { window.patience = ms; return timeout(ms); };
		return true;
	})()`)
	b.click("#fire")
	b.until(`window.patience > 0`)
	if ms := js[int](b, `window.patience`); ms < 100*3000 {
		t.Errorf("the page waits %d ms for a request", ms)
	}
}

// TestTheSessionCard counts, logs in and logs out.
func TestTheSessionCard(t *testing.T) {
	b := openDemo(t, demotest.Start(t).URL, laptopScreen)
	for _, step := range []struct{ button, count string }{
		{"#incr", "1"}, {"#incr", "2"}, {"#login", "2"}, {"#incr", "3"}, {"#logout", "0"}, {"#incr", "1"},
	} {
		b.do(chromedp.Click(chromedp.CSS(step.button)))
		shown := `document.querySelector('#count').textContent.trim() === '` + step.count + `'`
		if _, err := chromedp.Run(b.ctx(), chromedp.Poll[bool](shown)); err != nil {
			t.Fatalf("after %s: the page shows %q, want %q (%v)", step.button, text(b, "#count"), step.count, err)
		}
	}
}

// fits checks that the page is not wider than the screen. With go test -artifacts it also keeps a
// screenshot.
func (b *tab) fits(name string) {
	b.t.Helper()
	if over := js[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
		b.t.Errorf("%s: the page is %d pixels wider than the screen", name, over)
	}
	b.keep(name, chromedp.FullScreenshot(100))
}

// keep takes a picture. With go test -artifacts it stays: desktop-light-grids and devices-light are in the
// README.
func (b *tab) keep(name string, picture chromedp.Action[[]byte]) {
	b.t.Helper()
	shot, err := chromedp.Run(b.ctx(), picture)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), shot, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}

var laptopScreen = screen{"laptop", 1280, 800, "light"}

// All squares are visible at once on a laptop, before the run and with its result. If nothing was lost, hardly
// any space below them is empty: two lines, and the card's edge.
func TestAllSquaresAreAboveTheFold(t *testing.T) {
	b := openDemo(t, demotest.Start(t).URL, laptopScreen)
	fold := float64(laptopScreen.height)
	for _, when := range []string{"before the run", "after it"} {
		bottom := js[float64](b, `Math.max(...[...document.querySelectorAll('.cell')].map(c => c.getBoundingClientRect().bottom))`)
		if bottom > fold || bottom < fold/2 {
			t.Errorf("%s, the last row of squares ends at %.0f of %.0f pixels", when, bottom, fold)
		}
		if when == "before the run" {
			b.fire()
		}
	}
	empty := js[float64](b, `(() => {
		const text = document.createRange();
		text.selectNodeContents(document.querySelector('#lock [data-lost]'));
		return document.querySelector('#lock').getBoundingClientRect().bottom - text.getBoundingClientRect().bottom;
	})()`)
	if empty < 0 || empty > 75 {
		t.Errorf("%.0f pixels below the squares are empty", empty)
	}
}

// A square that waits for its response is as visible as WCAG 1.4.11 requires, in both colour schemes.
func TestEmptySquaresAreVisible(t *testing.T) {
	page := demotest.Start(t).URL
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			b := openDemo(t, page, screen{"", 1280, 800, scheme})
			contrast := js[float64](b, `(() => {
				const luminance = (color) => {
					const [r, g, b] = color.match(/[\d.]+/g).map(v => v / 255)
						.map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
					return .2126 * r + .7152 * g + .0722 * b;
				};
				const edge = luminance(getComputedStyle(document.querySelector('.cell[data-state=idle]')).borderTopColor);
				const card = luminance(getComputedStyle(document.querySelector('.card')).backgroundColor);
				return (Math.max(edge, card) + .05) / (Math.min(edge, card) + .05);
			})()`)
			if contrast < 3 {
				t.Errorf("the contrast is %.2f, want 3", contrast)
			}
		})
	}
}

// claims makes the browser pretend to be another one.
func claims(agent string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: agent})
		return err
	})
}

const iPhone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1"

// signIn enters a name into the second page's form.
func (b *tab) signIn(page, name string) {
	b.t.Helper()
	b.open(page + "/devices")
	b.do(chromedp.SendKeys(chromedp.CSS("#name"), name))
	b.press(".sign-in button")
	b.shows(".device[data-this]")
}

// A name that turns the direction of writing does not turn the sentence around it.
func TestANameTurnsNoSentence(t *testing.T) {
	page := demotest.Start(t).URL
	b := openDemo(t, page, laptopScreen)
	b.open(page + "/devices")
	js[string](b, `document.querySelector('#name').value = 'ann \u202e'`)
	b.press(".sign-in button")
	b.shows("#user")
	turned := js[bool](b, `(() => {
		const rest = document.querySelector('.lead').lastChild;
		const left = (word) => {
			const range = document.createRange();
			range.setStart(rest, rest.data.indexOf(word));
			range.setEnd(rest, rest.data.indexOf(word) + word.length);
			return range.getBoundingClientRect().left;
		};
		return left('these') > left('browsers');
	})()`)
	if turned {
		t.Error("the words after the name run from right to left")
	}
}

// endAll ends all sessions of the user, and confirms that. A refresh of the list would close the question, so the
// list must already show all sessions.
func (b *tab) endAll() {
	b.t.Helper()
	b.shows(`#live[data-state="on"]`) // the list was refreshed
	b.click("#ask-end-all")
	b.shows("#sure:popover-open")
	b.press("#end-all")
}

// devices returns the devices that the page lists, the newest first.
func (b *tab) devices() []string {
	b.t.Helper()
	return js[[]string](b, `[...document.querySelectorAll('.device h2')].map(h => h.textContent.replace(/\s+/g, ' '))`)
}

// TestTwoBrowsersOfAUser signs in from two browsers, and ends the session of the first one from the other. The
// page in the first browser reports that by itself.
func TestTwoBrowsersOfAUser(t *testing.T) {
	for _, screen := range []screen{{"devices-light", 1000, 640, "light"}, {"devices-dark", 1000, 640, "dark"}, {"devices-phone", 375, 800, "light"}} {
		t.Run(screen.name, func(t *testing.T) {
			page := demotest.Start(t).URL
			laptop, phone := openDemo(t, page, screen), openDemo(t, page, screen)
			phone.do(claims(iPhone))
			phone.signIn(page, "ann")
			laptop.press("nav a")
			laptop.shows("#name")
			laptop.fits(screen.name + "-signed-out")
			laptop.signIn(page, "ann")
			laptop.fits(screen.name)
			if got := laptop.devices(); !slices.Equal(got, []string{"Chrome on Linux this one", "Safari on iPhone"}) {
				t.Errorf("the laptop shows %q", got)
			}

			laptop.press(".device:not([data-this]) button")
			laptop.shows(".device:only-child")
			phone.shows("#over")
			phone.fits(screen.name + "-ended")
			phone.signIn(page, "ann")
			laptop.shows("#end-others")
			phone.endAll()
			phone.shows("#name")
			if surprised := js[bool](phone, `document.querySelector('#over') !== null`); surprised {
				t.Error("the phone has ended all sessions, but its page reports the end of its own as an event")
			}
			laptop.shows("#over")
		})
	}
}
