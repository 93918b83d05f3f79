// Package browser tests sessions in a real browser: Chromium, headless. It has its own rules about
// cookies, about requests that it cancels, and about requests that it sends again.
package browser

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/chromedp/chromedp"
)

// patience is the longest that a test waits for one thing. It is long, for busy machines.
const patience = 30 * time.Second

// chromium is the browser of all tests. Each visitor has separate cookies and connections in it, as in a
// private window.
var chromium context.Context

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(code)
}

// run starts the browser, and ends it after the tests.
func run(m *testing.M) (code int, err error) {
	profile, err := os.MkdirTemp("", "latchkey-chromium-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(profile)
	defer demotest.Clean()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.Flag("allow-pre-commit-input", true), // otherwise a click on a page that is not painted yet is lost
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-features", "BackForwardCache"), // chromedp does not find such pages
		chromedp.Flag("host-resolver-rules", "MAP *.localhost 127.0.0.1"),
		chromedp.IgnoreCertErrors, // those of httptest
		chromedp.UserDataDir(profile))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses to run as root
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	chromium, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(chromium); err != nil {
		return 0, fmt.Errorf("starting Chromium: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(chromium, patience)
		defer cancel()
		_ = chromedp.Cancel(ctx) // waits for its end
	}()
	return m.Run(), nil
}

// newVisitor returns the first tab of a visitor, with separate cookies.
func newVisitor(t *testing.T) *tab {
	t.Helper()
	return openTab(t, chromium, chromedp.WithNewBrowserContext())
}

// another opens one more tab of the visitor: a window, since a tab in the background paints nothing.
func (b *tab) another() *tab {
	b.t.Helper()
	return openTab(b.t, b.ctx, chromedp.WithNewWindow(true))
}

// A tab shows pages and gets clicks, from one goroutine.
type tab struct {
	t   *testing.T
	ctx context.Context
}

func openTab(t *testing.T, parent context.Context, options ...chromedp.ContextOption) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, options...)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // opens it, for as long as ctx lasts
		t.Fatalf("opening a tab: %v", err)
	}
	return &tab{t, ctx}
}

// do fails the test unless all steps succeed.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// leads takes steps that lead to another page, waits for it, and returns its status: 0 if there is no
// response.
func (b *tab) leads(steps ...chromedp.Action[chromedp.Void]) (status int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	response, err := chromedp.RunResponse(ctx, steps...)
	if err != nil || response == nil {
		b.t.Logf("the browser shows no page: %v", err)
		return 0
	}
	return int(response.Status)
}

func (b *tab) open(url string) (status int) {
	b.t.Helper()
	return b.leads(chromedp.Navigate(url))
}

// press clicks on a link or button that leads to another page, and returns the page's status.
func (b *tab) press(selector string) (status int) {
	b.t.Helper()
	return b.leads(chromedp.Click(chromedp.CSS(selector)))
}

// click does not wait for a page.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.clickAt(b.find(selector))
}

// find returns the position of an element on the page. While another page is loading, the browser does
// not answer such questions, but it accepts clicks.
func (b *tab) find(selector string) point {
	b.t.Helper()
	return js[point](b, `(r => ({X: r.x + r.width / 2, Y: r.y + r.height / 2}))(
		document.querySelector('`+selector+`').getBoundingClientRect())`)
}

func (b *tab) clickAt(p point) {
	b.t.Helper()
	b.do(chromedp.MouseClickXY(p.X, p.Y))
}

type point struct{ X, Y float64 }

// shows waits until the tab shows what the selector selects.
func (b *tab) shows(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.WaitVisible(chromedp.CSS(selector))); err != nil {
		b.t.Fatalf("the tab does not show %s: %v; it shows:\n%s", selector, err,
			js[string](b, `document.documentElement.outerHTML`))
	}
}

// js returns the value of an expression, or the result of a promise.
func js[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}
