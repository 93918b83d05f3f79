package browser

import (
	"context"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
)

// P4: if a session was ended elsewhere, its visitor is a guest, and everything works for the guest at once.
func TestAddingToTheCartAfterTheEnd(t *testing.T) {
	inEachBrowser(t, func(t *testing.T, browser string) {
		s, b := visitIn(t, browser, opening{})
		for name, end := range map[string]func(context.Context, *middleware.Sessions, string) error{
			"End": func(ctx context.Context, s *middleware.Sessions, id string) error { return s.End(ctx, id) },
			"EndAll": func(ctx context.Context, s *middleware.Sessions, _ string) error {
				_, err := s.EndAll(ctx, "ann")
				return err
			},
		} {
			for way, answer := range map[string]string{"fetch": "200", "htmx": "200", "form": "303"} {
				b.open(s.url + "/with/htmx.org-2.0.11.js")
				b.logIn()
				b.open(s.url + "/with/htmx.org-2.0.11.js")
				if err := end(t.Context(), s.sessions, idOf(b)); err != nil {
					t.Fatal(err)
				}
				s.forgetAnswers()
				added := s.stop("POST /cart", "after the sessions")
				added.letGo()
				b.click("#add-by-" + way)
				added.wait()
				b.until(`count.textContent === '1'`)
				if got := s.forgetAnswers()[0]; got != "POST /cart: "+answer+" and a cookie" {
					t.Errorf("after %s, by %s: %s", name, way, got)
				}
				b.open(s.url + "/account/")
				b.showsUser("")
				b.until(`count.textContent === '1'`)
				b.press("#logout") // and begin anew
			}
		}
	})
}
