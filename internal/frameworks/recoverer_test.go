package frameworks

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// What has begun cannot become a 500: there the README's recoverer only adds its line. What was
// set before the first byte is saved.
func TestAPanicInAStream(t *testing.T) {
	t.Parallel()
	s := newSite(t, middleware.Options{}, func(sessions *middleware.Sessions) http.Handler {
		return recoverer(sessions.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, add(session.FromContext(r.Context()), 1))
			_ = http.NewResponseController(w).Flush()
			panic("boom")
		})))
	})
	v := newVisitor(t, s)
	v.post("/").want(t, 200, "1\nInternal Server Error")
	v.post("/").want(t, 200, "2\nInternal Server Error")
}
