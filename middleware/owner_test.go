package middleware_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// Whoever is called because of a 503 reads in the log which request holds the
// session, and in which process. The rest of its path may be a secret, as its
// query may: neither the log nor Redis gets to see it.
func TestTheLogNamesTheHolder(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		busy, free := make(chan struct{}), make(chan struct{})
		mux := app()
		mux.HandleFunc("/reset/{token}", func(http.ResponseWriter, *http.Request) {
			close(busy)
			<-free
		})
		s := newSite(t, r.Pool(t, 4), middleware.Options{LockWait: 50 * time.Millisecond}, mux)
		v := newVisitor(t)
		v.get(s.URL+"/add").want(t, 200, "1")
		done := make(chan answer, 1)
		go func() { done <- v.get(s.URL + "/reset/open-sesame?code=open-sesame") }()
		<-busy
		for _, key := range r.Keys(t) {
			if value, _ := r.Get(t, key); strings.Contains(value, "sesame") {
				t.Errorf("%s is %s", key, value)
			}
		}
		v.get(s.URL+"/add").want(t, 503, "*")
		close(free)
		(<-done).want(t, 200, "")
		if len(s.log.lines("GET /reset/… for ")) != 1 || len(s.log.lines("sesame")) != 0 {
			t.Errorf("log:\n%s", s.log)
		}
	})
}
