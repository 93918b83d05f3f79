package browser

import (
	"testing"

	"github.com/a2139e8d/latchkey/internal/demotest"
)

var laptopScreen = screen{"laptop", 1280, 800, "light"}

// All squares are to be seen at once on a laptop: before the run, and with its result. Where nothing
// was lost, little is empty below that: two lines, and the card's edge.
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
		t.Errorf("%.0f pixels are empty", empty)
	}
}

// A square that waits for its request is as visible as WCAG 1.4.11 demands, in both schemes.
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
