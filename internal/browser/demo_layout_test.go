package browser

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/chromedp/chromedp"
)

// fire presses the button and waits for the result.
func (b *browser) fire(t *testing.T) {
	t.Helper()
	b.do(t, chromedp.Click(chromedp.CSS("#fire")), chromedp.WaitVisible(chromedp.CSS(`body[data-run="done"]`)))
}

// All squares are to be seen at once on a laptop: before the run, and with its result.
func TestAllSquaresAreAboveTheFold(t *testing.T) {
	const height = 800
	page := demotest.Start(t).URL
	b := openBrowser(t)
	b.do(t, chromedp.EmulateViewport(1280, height), chromedp.Navigate(page))
	for _, when := range []string{"before the run", "after it"} {
		bottom := eval[float64](t, b, `Math.max(...[...document.querySelectorAll('.cell')].map(c => c.getBoundingClientRect().bottom))`)
		if bottom > height || bottom < height/2 {
			t.Errorf("%s, the last row of squares ends at %.0f of %d pixels", when, bottom, height)
		}
		if when == "before the run" {
			b.fire(t)
		}
	}
	b.check(t, page)
}

// Where nothing was lost, little is empty below that: two lines, and the card's edge.
func TestNothingLostLeavesNoHole(t *testing.T) {
	page := demotest.Start(t).URL
	b := openBrowser(t)
	b.do(t, chromedp.EmulateViewport(1280, 800), chromedp.Navigate(page))
	b.fire(t)
	empty := eval[float64](t, b, `(() => {
		const text = document.createRange();
		text.selectNodeContents(document.querySelector('#lock [data-lost]'));
		return document.querySelector('#lock').getBoundingClientRect().bottom - text.getBoundingClientRect().bottom;
	})()`)
	if empty < 0 || empty > 75 {
		t.Errorf("%.0f pixels are empty", empty)
	}
	b.check(t, page)
}

// A square that waits for its request is as visible as WCAG 1.4.11 demands, in both schemes.
func TestEmptySquaresAreVisible(t *testing.T) {
	page := demotest.Start(t).URL
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			b := openBrowser(t)
			b.do(t, prefers(scheme), chromedp.Navigate(page))
			contrast := eval[float64](t, b, `(() => {
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
			b.check(t, page)
		})
	}
}
