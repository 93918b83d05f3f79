package faults

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A client sends a thousand requests at once, with one cookie. 128 of them wait, the rest are refused
// at once, and all others are served meanwhile. By how much others wait longer is only noted: accepting
// a thousand requests has a cost of its own, on the same processors as all else here.
func TestFlood(t *testing.T) { // not parallel, since it measures
	r := redistest.Real(t)
	d := demotest.Start(t, "-redis", r.URL, "-lease", lease.String(), "-lock-wait", "1s", "-work", "50ms")
	users := newUsers(t, 8, func(float64) string { return d.URL })
	attacker := newUsers(t, 1, users[0].site)[0]
	row := noted(t, "1,000 requests with one cookie at once, a handler of 50 ms", "P5: too many are refused at once, others are served")
	alone := longestOf(t, users, func() {})
	const flood = 1000
	var refused atomic.Int64
	flooded := longestOf(t, users, func() {
		var all sync.WaitGroup
		for range flood {
			all.Go(func() {
				if attacker.set(d.URL, "flood") == http.StatusServiceUnavailable {
					refused.Add(1)
				}
			})
		}
		all.Wait()
	})
	row.seen = fmt.Sprintf("the longest wait of others was %v alone, %v flooded; %d of %d were refused",
		alone.Round(time.Millisecond), flooded.Round(time.Millisecond), refused.Load(), flood)
	// Of those that wait for a second some are served, and their places taken by others.
	if most, n := int64(flood-129), refused.Load(); n < most*9/10 || strings.Count(d.Log(), "kind=too_many_waiters") == 0 {
		t.Errorf("%d requests were refused, want about %d, and a word in the log", n, most)
	}
}

// longestOf returns how long users' requests take, at most, while something happens, and for at least a
// second. All must be answered.
func longestOf(t *testing.T, users []*user, happens func()) time.Duration {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var longest atomic.Int64
	var working sync.WaitGroup
	for _, u := range users {
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				begun := time.Now()
				if status := u.set(u.site(0), fmt.Sprint("work", n%100)); status != http.StatusOK {
					t.Errorf("another's request was answered with %d", status)
				}
				took := within(t, "another's request", begun, lease+timeout)
				longest.Store(max(longest.Load(), int64(took)))
			}
		})
	}
	happens()
	working.Wait()
	return time.Duration(longest.Load())
}
