package middleware_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
)

// A user's session whose record is damaged begins again as one that nobody has logged in to, where
// OnCorrupt says so: it is saved and read like any other, and can be logged in to again.
func TestADamagedSessionOfAUserIsReplaced(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		s := newUserSite(t, r, middleware.Options{
			OnCorrupt: func(*http.Request, error) error { return nil },
			GuestTTL:  5 * time.Minute,
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
			ann.wantLeft(t, s, r, 5*time.Minute)
			ann.get(s.URL+"/login/ann").want(t, 200, "")
			ann.wantLeft(t, s, r, 30*time.Minute)
			ann.get(s.URL+"/add").want(t, 200, "3")
			ann.get(s.URL+"/user").want(t, 200, "ann")
		}
	})
}

// So it is where only what the session holds cannot be read, in each mode: nobody is logged in to what
// takes its place.
func TestAUsersSessionWithDamagedValuesIsReplaced(t *testing.T) {
	t.Parallel()
	redistest.InFakeTime(t, func(t *testing.T, r *redistest.Server) {
		for _, mode := range []middleware.Mode{middleware.Exclusive, middleware.Optimistic, middleware.Lazy} {
			held := false
			mux := http.NewServeMux()
			mux.HandleFunc("/held", func(w http.ResponseWriter, req *http.Request) {
				s, err := session.Start(req.Context())
				if err != nil {
					t.Error(err)
					return
				}
				held = strings.Contains(strings.Join(r.Keys(t), " "), ".lock")
				s.Set("n", 7)
			})
			var s *site
			mux.Handle("/", users(func() *middleware.Sessions { return s.sessions }))
			s = newSite(t, r.Pool(t, 8), middleware.Options{
				Mode:      byPath(map[string]middleware.Mode{"/held": mode}),
				OnCorrupt: func(*http.Request, error) error { return nil },
				GuestTTL:  5 * time.Minute,
			}, mux)
			ann := newVisitor(t)
			ann.get(s.URL+"/login/ann").want(t, 200, "")
			id := ann.get(s.URL + "/id").body
			record := recordOf(id)
			stored, _ := r.Get(t, record)
			damaged := strings.Replace(stored, `{}]`, `[1]]`, 1)
			if damaged == stored {
				t.Fatalf("no values in %s", stored)
			}
			r.Do(t, "SET", record, damaged, "PX", 60000)
			ann.get(s.URL+"/held").want(t, 200, "")
			if !held {
				t.Errorf("%v: the session was not locked", mode)
			}
			ann.get(s.URL+"/user").want(t, 200, "")
			ann.get(s.URL+"/get").want(t, 200, "7")
			ann.wantLeft(t, s, r, 5*time.Minute)
			if r.Exists(t, record) && ann.get(s.URL+"/id").body == id {
				t.Errorf("%v: it has the id of the user's session", mode)
			}
			r.Do(t, "FLUSHALL")
		}
	})
}
