package browser

import (
	"os"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/chromedp/chromedp"
)

// axe finds nothing that a person with a disability would stumble over: on each page of the demo, in each state, in
// both colour schemes, on a laptop and on a phone.
func TestAxeFindsNothing(t *testing.T) {
	axe, err := os.ReadFile("../../bin/npm/axe-core-4.10.3.js")
	if err != nil {
		t.Fatalf("%v: make e2e gets it", err)
	}
	for _, screen := range []screen{{"light", 1280, 800, "light"}, {"dark", 1280, 800, "dark"}, {"phone", 320, 640, "light"}, {"phone, dark", 320, 640, "dark"}} {
		t.Run(screen.name, func(t *testing.T) {
			page := demotest.Start(t).URL
			b, other := openDemo(t, page, screen), openDemo(t, page, screen)
			check := func(state string) {
				t.Helper()
				b.until(`document.getAnimations().length === 0`)
				if _, err := b.eval(string(axe) + "\n''"); err != nil {
					t.Fatal(err)
				}
				found := js[[]string](b, `axe.run().then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.target).join(' ')))`)
				if len(found) > 0 {
					t.Errorf("%s: %s", state, strings.Join(found, "; "))
				}
			}
			check("the first page")
			b.fire()
			check("after the button")
			b.open(page + "/devices")
			check("signed out")
			other.signIn(page, "ann")
			b.signIn(page, "ann")
			check("signed in")
			b.click("#ask-end-all")
			b.shows("#sure:popover-open")
			check("the question")
			b.do(chromedp.KeyEvent("\x1b")) // Escape
			other.endAll()
			b.shows("#over")
			check("ended elsewhere")
			b.open(page)
			check("the first page again")
		})
	}
}
