package browser

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// chromium is Chromium, driven by chromedp.
type chromium struct{ ctx context.Context }

// startChromium starts it; end ends it.
func startChromium(profile string) (b browser, end func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.Flag("allow-pre-commit-input", true), // otherwise a click on a page that is not painted yet is lost
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP *.localhost 127.0.0.1"),
		chromedp.IgnoreCertErrors, // httptest's certificates
		chromedp.UserDataDir(profile))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses to run as root
	}
	allocator, release := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	end = func() {
		ctx, cancelWait := context.WithTimeout(ctx, patience)
		defer cancelWait()
		_ = chromedp.Cancel(ctx) // waits for its end
		cancel()
		release()
	}
	return chromium{ctx}, end, chromedp.Do(ctx)
}

func (c chromium) visitor(t *testing.T) (driver, error) {
	return openChromiumTab(t, c.ctx, chromedp.WithNewBrowserContext())
}

type chromiumTab struct{ ctx context.Context }

func openChromiumTab(t *testing.T, parent context.Context, options ...chromedp.ContextOption) (driver, error) {
	ctx, cancel := chromedp.NewContext(parent, options...)
	t.Cleanup(cancel)
	return chromiumTab{ctx}, chromedp.Do(ctx) // opens the tab, which lasts as long as ctx
}

func (c chromiumTab) window(t *testing.T) (driver, error) {
	return openChromiumTab(t, c.ctx, chromedp.WithNewWindow(true))
}

func (c chromiumTab) load(url string) error { return c.do(chromedp.Navigate(url)) }

func (c chromiumTab) mouse(pause time.Duration, at ...point) error {
	for i, p := range at {
		if i > 0 {
			time.Sleep(pause)
		}
		if err := c.do(chromedp.MouseClickXY(p.X, p.Y)); err != nil {
			return err
		}
	}
	return nil
}

func (c chromiumTab) eval(script string) (string, error) {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
}

func (c chromiumTab) cookies() (found []cookie, err error) {
	return found, c.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		got, err := cdp.Call(ctx, target, network.GetCookies, network.GetCookiesParams{})
		for _, c := range got.Cookies {
			found = append(found, cookie{c.Name, c.Value, !c.Session})
		}
		return err
	}))
}

func (c chromiumTab) do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// do fails the test unless all steps succeed. Only Chromium knows such steps.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := b.driver.(chromiumTab).do(steps...); err != nil {
		b.t.Fatal(err)
	}
}

// ctx is the tab's context for chromedp.
func (b *tab) ctx() context.Context { return b.driver.(chromiumTab).ctx }
