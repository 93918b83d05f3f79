package middleware_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// P1: of 100 concurrent writes to one session, in two processes, 100 stay.
func TestConcurrentWritesAllStay(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		sites := []*site{
			newSite(t, r.Pool(t, 10), middleware.Options{}, app()),
			newSite(t, r.Pool(t, 10), middleware.Options{}, app()),
		}
		v := newVisitor(t)
		v.get(sites[0].URL+"/add").want(t, 200, "1")

		var crowd sync.WaitGroup
		for i := range 100 {
			crowd.Go(func() {
				if a := v.get(fmt.Sprintf("%s/set/k%d", sites[i%2].URL, i)); a.err != nil || a.StatusCode != 200 {
					t.Errorf("write %d: %v %d %s", i, a.err, a.StatusCode, a.body)
				}
			})
		}
		crowd.Wait()
		v.get(sites[0].URL+"/len").want(t, 200, "101")
	})
}
