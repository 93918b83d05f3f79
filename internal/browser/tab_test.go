// Package browser tests sessions in real browsers, without a window: Chromium and Firefox. Each has its own rules
// about cookies, about requests that it cancels or sends again, and about pages that it keeps.
package browser

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"
)

// patience is the longest that a test waits for one thing. It is long, for busy machines.
const patience = 30 * time.Second

// A tab shows pages and gets clicks, from one goroutine.
type tab struct {
	t *testing.T
	driver
	pages int // how many pages leads has left
}

// A driver is what differs between the browsers.
type driver interface {
	// load shows a page, and waits until it is loaded.
	load(url string) error
	// mouse clicks at these places, one after the other, with pauses.
	mouse(pause time.Duration, at ...point) error
	// eval returns the string with which the script's promise is fulfilled.
	eval(script string) (string, error)
	// cookies returns the cookies of the page's site.
	cookies() ([]cookie, error)
	// window opens one more window of the same visitor.
	window(t *testing.T) (driver, error)
}

// A cookie is what a browser keeps.
type cookie struct {
	name, value string
	lasts       bool // for longer than the browser runs
}

type point struct{ X, Y float64 }

// newVisitor returns the first tab of a visitor, in Chromium.
func newVisitor(t *testing.T) *tab {
	t.Helper()
	return newVisitorIn(t, "chromium")
}

// newVisitorIn returns the first tab of a visitor. Each visitor has separate cookies and connections, as in a
// private window.
func newVisitorIn(t *testing.T, browser string) *tab {
	t.Helper()
	d, err := browsers[browser].visitor(t)
	if err != nil {
		t.Fatalf("opening a tab of %s: %v", browser, err)
	}
	return &tab{t: t, driver: d}
}

// inEachBrowser runs a test in each browser.
func inEachBrowser(t *testing.T, test func(t *testing.T, browser string)) {
	t.Parallel()
	for name := range browsers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name)
		})
	}
}

// another opens one more tab of the visitor. It is a window, since a tab in the background paints nothing.
func (b *tab) another() *tab {
	b.t.Helper()
	d, err := b.window(b.t)
	if err != nil {
		b.t.Fatalf("opening another tab: %v", err)
	}
	return &tab{t: b.t, driver: d}
}

// open shows a page, and returns its status: 0 if there is no response.
func (b *tab) open(url string) (status int) {
	b.t.Helper()
	if err := b.load(url); err != nil {
		b.t.Logf("the browser shows no page: %v", err)
		return 0
	}
	return b.status()
}

func (b *tab) status() int {
	b.t.Helper()
	return js[int](b, `performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0`)
}

// pageEnded is true when the browser has read the page to its end. Between two pages, Firefox has an empty document that
// is neither loading nor ended.
const pageEnded = `['interactive', 'complete'].includes(document.readyState)`

// leads takes a step that leads to another page, waits until that page has ended, and returns its status: 0 if
// there is no response. A page that was cut off never ends.
func (b *tab) leads(step func()) (status int) {
	b.t.Helper()
	b.pages++ // a page that the browser has kept has an earlier number
	js[int](b, fmt.Sprintf(`window.leaving = %d`, b.pages))
	step()
	b.until(fmt.Sprintf(`window.leaving !== %d && `, b.pages) + pageEnded)
	return b.status()
}

// press clicks on a link or button that leads to another page, and returns the page's status.
func (b *tab) press(selector string) (status int) {
	b.t.Helper()
	return b.leads(func() { b.click(selector) })
}

// click clicks on an element, without waiting for a page.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.clickAt(b.find(selector))
}

func (b *tab) clickAt(p point) {
	b.t.Helper()
	if err := b.mouse(0, p); err != nil {
		b.t.Fatal(err)
	}
}

// find waits for an element, and returns its position on the page. While another page is loading, the browser does
// not answer such questions, but it accepts clicks.
func (b *tab) find(selector string) point {
	b.t.Helper()
	b.shows(selector)
	return js[point](b, `(e => {
		e.scrollIntoView({block: 'nearest'});
		const r = e.getBoundingClientRect();
		return {X: r.x + r.width / 2, Y: r.y + r.height / 2};
	})(document.querySelector('`+selector+`'))`)
}

// back goes back, without waiting for the page.
func (b *tab) back() {
	b.t.Helper()
	js[bool](b, `setTimeout(() => history.back()), true`)
}

// kept returns the site's cookies.
func (b *tab) kept() []cookie {
	b.t.Helper()
	kept, err := b.cookies()
	if err != nil {
		b.t.Fatal(err)
	}
	return kept
}

// getsCookie takes a step that leads to another cookie, and waits for it.
func (b *tab) getsCookie(step func()) {
	b.t.Helper()
	before := b.kept()
	step()
	for begun := time.Now(); slices.Equal(before, b.kept()); {
		if time.Since(begun) > patience {
			b.t.Fatal("the cookies stay as they were")
		}
	}
}

// shows waits until the tab shows what the selector selects.
func (b *tab) shows(selector string) {
	b.t.Helper()
	b.until(`document.querySelector('` + selector + `')?.checkVisibility()`)
}

// until waits until a condition is true, on this page or on the next one. The page reports each change of its
// elements. Other changes, such as that of a variable, are noticed a little later.
func (b *tab) until(condition string) {
	b.t.Helper()
	script := `new Promise(done => {
		const look = () => (` + condition + `) && done('yes');
		new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true});
		addEventListener('load', look);
		addEventListener('pagehide', () => done('left')); // otherwise Firefox never answers
		look();
		setTimeout(() => done('not yet'), 100);
	})`
	var answer string
	var err error
	for begun := time.Now(); time.Since(begun) < patience; {
		// If the page is left meanwhile, the script may fail.
		if answer, err = b.eval(script); answer == "yes" {
			return
		}
	}
	b.t.Fatalf("the tab never fulfils %s (%v); it shows:\n%s", condition, err,
		js[string](b, `location.href + '\n' + document.documentElement?.outerHTML`))
}

// js returns the value of an expression, or the result of a promise.
func js[T any](b *tab, expression string) (v T) {
	b.t.Helper()
	text, err := b.eval(`(async () => JSON.stringify(await (` + expression + `) ?? null))()`)
	if err == nil {
		err = json.Unmarshal([]byte(text), &v)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}
