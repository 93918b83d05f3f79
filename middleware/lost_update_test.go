package middleware_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// crowd makes requests of one visitor, all at once and in two processes. They have n in their
// session in the end.
func crowd(t *testing.T, r *redistest.Server, locker func() locker.Locker, requests int, request func(i int) (method, path string), n string) {
	t.Helper()
	var sites []*site
	for range 2 {
		o := steady
		if locker != nil {
			o.Locker = locker()
		}
		sites = append(sites, newSiteOn(t, store.New(r.Pool(t, 10), o), middleware.Options{Mode: optimisticGets, LockWait: time.Minute}, app()))
	}
	v := newVisitor(t).everywhere()
	var all sync.WaitGroup
	for i := range requests {
		if i == 0 {
			v.post(sites[0].URL+"/add").want(t, 200, "1")
		}
		all.Go(func() {
			method, path := request(i)
			if a := v.send(t.Context(), method, sites[i%2].URL+path, nil); a.err != nil || a.StatusCode != 200 {
				t.Errorf("request %d: %v %d %s", i, a.err, a.StatusCode, a.body)
			}
		})
	}
	all.Wait()
	v.get(sites[0].URL+"/get").want(t, 200, n)
}

// P1: of 100 concurrent writes to one session, in two processes, 100 stay.
func TestConcurrentWritesAllStay(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) {
		crowd(t, r, nil, 100, func(int) (method, path string) { return http.MethodPost, "/add" }, "101")
	})
}

// mixed are GETs, which are optimistic, and some POSTs.
func mixed(i int) (method, path string) {
	if i%6 == 0 {
		return http.MethodPost, "/add"
	}
	return http.MethodGet, "/add"
}

// P1: of 100 concurrent GETs that each add 1, in two processes, 100 are kept, beside POSTs that
// do so, too.
func TestConcurrentOptimisticWritesAllStay(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, r *redistest.Server) { crowd(t, r, nil, 120, mixed, "121") })
}

// With a Locker of one's own nothing is saved without it. All the same nothing is lost.
func TestOptimisticWithALocker(t *testing.T) {
	inBubble(t, func(t *testing.T, r *redistest.Server) {
		own := func() locker.Locker {
			return locker.NewSpin(r.Pool(t, 4), locker.Options{Wait: time.Minute, Timeout: 20 * time.Second})
		}
		crowd(t, r, own, 20, mixed, "21")
	})
}
