package middleware_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// As in net/http, a Write beyond the declared length is refused as a whole, and so are all Writes after it. Otherwise
// a client could take bytes that were meant for later for the rest of the response.
func TestWhatFollowsTooLongAWriteIsRefusedToo(t *testing.T) {
	for name, more := range map[string]func(http.ResponseWriter) (int64, error){
		"Write": func(w http.ResponseWriter) (int64, error) { n, err := w.Write([]byte("later")); return int64(n), err },
		"copy": func(w http.ResponseWriter) (int64, error) {
			return io.Copy(w, struct{ io.Reader }{strings.NewReader("later")})
		},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			s := siteWith(t, r, middleware.Options{}, "/long", func(_ *session.Session, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10")
				if n, err := w.Write([]byte("more than ten")); n > 0 || !errors.Is(err, http.ErrContentLength) {
					t.Errorf("Write: %d, %v", n, err)
				}
				w.(http.Flusher).Flush()
				if n, err := more(w); n > 0 || !errors.Is(err, http.ErrContentLength) {
					t.Errorf("%s: %d, %v", name, n, err)
				}
			})
			if a := newVisitor(t).get(s.URL + "/long"); a.body != "" {
				t.Errorf("the body is %q", a.body)
			}
		})
	}
}
