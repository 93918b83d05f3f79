package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// Nothing that a client sends comes back in a header: not in the answer of a handler that sets
// none of its own, and not in an error.
func TestNothingOfARequestGetsIntoAHeader(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		handler := newSessions(t, r, middleware.Options{}).Handler(app())
		ask := func(path, cookie string) http.Header {
			req := httptest.NewRequest("MARKER", path+"?MARKER=MARKER", strings.NewReader("MARKER"))
			for _, name := range []string{"Origin", "Referer", "User-Agent", "X-Forwarded-Host", "Marker"} {
				req.Header.Set(name, "MARKER")
			}
			req.Host = "MARKER"
			req.Header.Set("Cookie", cookie+"; sid=MARKER; MARKER=MARKER")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			return w.Result().Header
		}
		check := func(path string, h http.Header, sets bool) {
			t.Helper()
			echoed := strings.Contains(strings.ToUpper(fmt.Sprint(h)), "MARKER")
			if got := h.Get("Set-Cookie") != ""; got != sets || echoed {
				t.Errorf("%s: %v", path, h)
			}
		}
		added := ask("/add", "")
		check("a new session", added, true)
		pair, _, _ := strings.Cut(added.Get("Set-Cookie"), ";")
		check("a session", ask("/add", pair), false)
		check("a logout", ask("/logout", pair), true)
		check("a session that has ended", ask("/add", pair), false)
		r.Stop(t)
		check("no Redis", ask("/add", pair), false)
	})
}
