package middleware_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// A user's session whose record is damaged begins again as one that nobody has logged in to, where
// OnCorrupt says so: it is saved and read like any other, and can be logged in to again.
func TestADamagedSessionOfAUserIsReplaced(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{
			OnCorrupt: func(*http.Request, error) error { return nil },
		})
		for _, damage := range []string{"junk", `{"v":2,"s":"0123456789abcdef","c":1700000000000,"d":{}}`} {
			ann := newVisitor(t)
			ann.get(s.URL+"/login/ann").want(t, 200, "")
			ann.get(s.URL+"/add").want(t, 200, "1")
			for _, key := range r.Keys(t) {
				if strings.Contains(key, "}:") && !strings.HasSuffix(key, ".lock") {
					r.Do(t, "SET", key, damage, "PX", 60000)
				}
			}
			ann.get(s.URL+"/add").want(t, 200, "1")
			ann.get(s.URL+"/add").want(t, 200, "2")
			ann.get(s.URL+"/user").want(t, 200, "")
			ann.get(s.URL+"/login/ann").want(t, 200, "")
			ann.get(s.URL+"/add").want(t, 200, "3")
			ann.get(s.URL+"/user").want(t, 200, "ann")
		}
	})
}
