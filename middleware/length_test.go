package middleware_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// A Write that is longer than what is left of the declared length is refused, and so are all that
// follow, as in net/http: a shorter one must not take its place.
func TestAWriteThatIsTooLongIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]middleware.Options{"buffered": {}, "begun": {Buffer: 3}} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := newSite(t, r.Pool(t, 4), o, touched(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10")
				for _, part := range []string{"12345", "too long", "ABCDE"} {
					_, err := io.WriteString(w, part)
					if refused := err == http.ErrContentLength; refused == (part == "12345") {
						t.Errorf("%q: %v", part, err)
					}
				}
			}))
			if a := newVisitor(t).post(s.URL); a.err != io.ErrUnexpectedEOF || a.body != "12345" {
				t.Errorf("the client got %q, error %v", a.body, a.err)
			}
		})
	}
}
