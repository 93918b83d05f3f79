package middleware_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// A user's session whose record is damaged, as a whole or only in what it holds, begins again as one
// that nobody has logged in to, if OnCorrupt says so, in each mode: it is saved and read like any
// other, has another id, and can be logged in to again.
func TestADamagedSessionOfAUserIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Optimistic} {
			s := newUserSite(t, r, middleware.Options{
				Mode:      byPath(map[string]middleware.Mode{"/add": mode}),
				OnCorrupt: func(*http.Request, error) error { return nil },
				GuestTTL:  5 * time.Minute,
			})
			for _, damage := range []func(string) string{
				func(string) string { return "junk" },
				func(string) string { return `{"v":2,"s":"0123456789abcdef","c":1700000000000,"d":{}}` },
				func(record string) string { return strings.Replace(record, `{}]`, `[1]]`, 1) },
			} {
				ann := newVisitor(t)
				ann.get(s.URL+"/login/ann").want(t, 200, "")
				id := ann.get(s.URL + "/id").body
				stored, _ := r.Get(t, recordOf(id))
				damaged := damage(stored)
				if damaged == stored {
					t.Fatalf("no values in %s", stored)
				}
				r.Do(t, "SET", recordOf(id), damaged, "PX", 60000)
				ann.get(s.URL+"/add").want(t, 200, "1")
				ann.get(s.URL+"/add").want(t, 200, "2")
				ann.get(s.URL+"/user").want(t, 200, "")
				ann.wantLeft(t, s, r, 5*time.Minute)
				if ann.get(s.URL+"/id").body == id {
					t.Errorf("%v: it has the id of the user's session", mode)
				}
				ann.get(s.URL+"/login/ann").want(t, 200, "")
				ann.wantLeft(t, s, r, 30*time.Minute)
				ann.get(s.URL+"/add").want(t, 200, "3")
				ann.get(s.URL+"/user").want(t, 200, "ann")
			}
		}
	})
}
