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
func (b *browser) signIn(t *testing.T, page, name string) {
	t.Helper()
	b.do(t, chromedp.Navigate(page+"/devices"), chromedp.SendKeys(chromedp.CSS("#name"), name),
		chromedp.Click(chromedp.CSS(".sign-in button")), chromedp.WaitVisible(chromedp.CSS(".device[data-this]")))
}

// devices returns what the page lists, the newest first.
func (b *browser) devices(t *testing.T) []string {
	t.Helper()
	return eval[[]string](t, b, `[...document.querySelectorAll('.device h2')].map(h => h.textContent.replace(/\s+/g, ' '))`)
}

// TestTwoBrowsersOfAUser signs in from two, and ends one from the other, which sees that when it
// next asks.
func TestTwoBrowsersOfAUser(t *testing.T) {
	for _, screen := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"devices-light", 1000, 640, "light"}, {"devices-dark", 1000, 640, "dark"}, {"devices-phone", 375, 800, "light"}} {
		t.Run(screen.name, func(t *testing.T) {
			page := demotest.Start(t).URL
			laptop, phone := openBrowser(t), openBrowser(t)
			for _, b := range []*browser{laptop, phone} {
				b.do(t, chromedp.EmulateViewport(screen.width, screen.height), prefers(screen.scheme))
			}
			phone.do(t, claims(iPhone))
			phone.signIn(t, page, "ann")
			laptop.do(t, chromedp.Navigate(page), chromedp.Click(chromedp.CSS("nav a")), chromedp.WaitVisible(chromedp.CSS("#name")))
			save(t, laptop, screen.name+"-signed-out")
			laptop.signIn(t, page, "ann")
			save(t, laptop, screen.name)
			if got := laptop.devices(t); !slices.Equal(got, []string{"Chrome on Linux this one", "Safari on iPhone"}) {
				t.Errorf("the laptop shows %q", got)
			}
			laptop.fits(t, screen.width)

			laptop.do(t, chromedp.Click(chromedp.CSS(".device:not([data-this]) button")))
			laptop.do(t, chromedp.WaitVisible(chromedp.CSS(".device:only-child")))
			phone.do(t, chromedp.Click(chromedp.CSS("#reload")), chromedp.WaitVisible(chromedp.CSS("#over")))
			save(t, phone, screen.name+"-ended")
			phone.fits(t, screen.width)
			phone.signIn(t, page, "ann")
			laptop.do(t, chromedp.Click(chromedp.CSS("#reload")), chromedp.WaitVisible(chromedp.CSS("#end-others")))
			phone.do(t, chromedp.Click(chromedp.CSS("#end-all")), chromedp.WaitVisible(chromedp.CSS("#name")))
			if surprised := eval[bool](t, phone, `document.querySelector('#over') !== null`); surprised {
				t.Error("the phone has ended all sessions, and is surprised that its own is over")
			}
			laptop.do(t, chromedp.Click(chromedp.CSS("#end-others")), chromedp.WaitVisible(chromedp.CSS("#over")))
			for _, b := range []*browser{laptop, phone} {
				b.check(t, page)
			}
		})
	}
}

// fits checks that the page is not wider than the screen.
func (b *browser) fits(t *testing.T, screen int64) {
	t.Helper()
	if width := eval[int64](t, b, `document.documentElement.scrollWidth`); width > screen {
		t.Errorf("the page is %d pixels wide on a screen of %d", width, screen)
	}
}
