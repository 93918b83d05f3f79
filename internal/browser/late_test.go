package browser

import (
	"strings"
	"testing"
)

// P2: a change after the commit is a mistake of the program, but the handler runs only once. A browser sends a
// POST again if its connection ends before the first byte of the response. A shop that cut the connection there
// would charge a card three times for one click.
func TestALateChangeIsA500AndTheHandlerRanOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"now", "page"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, b := visit(t, opening{})
			if got := js[string](b, fetching(how)); got != "500 and whole" {
				t.Errorf("the response is %s, want 500 and whole", got)
			}
			s.charged(1)
			if status := b.press(buttonTo(how)); status != 500 {
				t.Errorf("the page is a %d, want 500", status)
			}
			if text := js[string](b, `document.body.textContent`); !strings.Contains(text, "saved") {
				t.Errorf("the page says %q", text)
			}
			s.charged(2)
			s.answered("GET /: 200 and a cookie", "POST /buy/"+how+": 500", "POST /buy/"+how+": 500")
			s.cut(0)
		})
	}
}

// P2: changes saved before the late change stay, and the browser has its cookie.
func TestALoginWithALateChangeIsALogin(t *testing.T) {
	t.Parallel()
	s, b := visit(t, opening{})
	if status := b.press(buttonTo("with-a-login")); status != 500 {
		t.Errorf("the page is a %d, want 500", status)
	}
	b.open(s.url)
	b.showsUser("ann")
	s.charged(1)
	s.answered("GET /: 200 and a cookie", "POST /buy/with-a-login: 500 and a cookie", "GET /: 200")
}

// P2: a response that has begun is cut off, but only after the browser has seen its beginning, so that it
// does not send the request again.
func TestALateChangeInAnAnswerThatHasBegunRunsOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"page", "flushed-page"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s, b := visit(t, opening{buffer: 16})
			if got := js[string](b, fetching(how)); got != "200 and cut off" {
				t.Errorf("the response is %s, want 200 and cut off", got)
			}
			s.charged(1)
			after := s.stop("POST /buy/"+how, "after the sessions")
			after.letGo()
			b.click(buttonTo(how))
			after.wait()
			b.until(`location.pathname == '/buy/` + how + `'`)
			// Chromium mostly shows the beginning. But if the response is cut off before it was parsed, the page stays empty.
			if shown := js[string](b, `document.body?.textContent ?? ''`); strings.Contains(shown, "Good bye") {
				t.Errorf("the page shows %q", shown)
			}
			s.charged(2)
			s.answered("GET /: 200 and a cookie", "POST /buy/"+how+": cut off", "POST /buy/"+how+": cut off")
		})
	}
}

func buttonTo(how string) string { return `button[formaction="/buy/` + how + `"]` }

// fetching is a script that buys in the background, and reports the result.
func fetching(how string) string {
	return `(async () => {
		const form = new FormData(document.querySelector('form:has([name=token])'));
		let answer = 'none';
		try {
			const a = await fetch('/buy/` + how + `', {method: 'POST', body: new URLSearchParams(form)});
			answer = a.status;
			await a.text();
			return answer + ' and whole';
		} catch {
			return answer + ' and cut off';
		}
	})()`
}

// charged checks how often a card was charged.
func (s *shop) charged(want int32) {
	s.t.Helper()
	if got := s.charges.Load(); got != want {
		s.t.Errorf("the card was charged %d times, want %d", got, want)
	}
}
