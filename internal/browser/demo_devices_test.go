package browser

import (
	"context"
	"slices"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// claims makes the browser say that it is another one.
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

// devices returns what the page lists, the newest first.
func (b *tab) devices() []string {
	b.t.Helper()
	return js[[]string](b, `[...document.querySelectorAll('.device h2')].map(h => h.textContent.replace(/\s+/g, ' '))`)
}

// TestTwoBrowsersOfAUser signs in from two, and ends one from the other, which sees that when it
// next asks.
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
			phone.press("#reload")
			phone.shows("#over")
			phone.fits(screen.name + "-ended")
			phone.signIn(page, "ann")
			laptop.press("#reload")
			laptop.shows("#end-others")
			phone.press("#end-all")
			phone.shows("#name")
			if surprised := js[bool](phone, `document.querySelector('#over') !== null`); surprised {
				t.Error("the phone has ended all sessions, and is surprised that its own is over")
			}
			laptop.press("#end-others")
			laptop.shows("#over")
		})
	}
}
