package middleware_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// The log line of a 503 names what holds the session, and in which process. Any part of
// a path may be a secret, as in the link of a mail, and so may the query: neither another
// visitor's log line nor Redis gets to see them.
func TestTheLogNamesTheHolder(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		for name, tt := range map[string]struct {
			pattern, path string
			routed        bool // before the session is opened
			want          string
		}{
			"a route":                   {"/reset/{token}", "/reset/open-sesame?code=open-sesame", true, "POST /reset/{token} for "},
			"a route with its method":   {"POST /{token}", "/open-sesame", true, "POST /{token} for "},
			"a secret of one part":      {"/{token}", "/open-sesame?code=open-sesame", false, "POST for "},
			"a secret in front":         {"/{token}/confirm", "/open-sesame/confirm", false, "POST for "},
			"a secret further back":     {"/reset/{token}", "/reset/open-sesame", false, "POST for "},
			"a secret in front, routed": {"/{token}/confirm", "/open-sesame/confirm", true, "POST /{token}/confirm for "},
		} {
			t.Run(name, func(t *testing.T) {
				busy, free := make(chan struct{}), make(chan struct{})
				slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					close(busy)
					<-free
				})
				holder := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
					mux := http.NewServeMux()
					if tt.routed {
						mux.Handle(tt.pattern, sessions(slow))
						return mux
					}
					mux.Handle(tt.pattern, slow)
					return sessions(http.HandlerFunc(mux.ServeHTTP)) // a router that cannot be asked
				})
				other := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: 50 * time.Millisecond}, app())
				v := newVisitor(t)
				v.get(other.URL+"/add").want(t, 200, "1")
				done := make(chan answer, 1)
				go func() { done <- v.post(holder.URL + tt.path) }()
				<-busy
				for _, key := range r.Keys(t) {
					if value, _ := r.Get(t, key); strings.Contains(value, "sesame") {
						t.Errorf("%s is %s", key, value)
					}
				}
				v.get(other.URL+"/add").want(t, 503, "*")
				close(free)
				(<-done).want(t, 200, "")
				if len(other.log.Lines(" "+tt.want)) != 1 || len(other.log.Lines("sesame")) != 0 {
					t.Errorf("log:\n%s", other.log)
				}
			})
		}
	})
}
