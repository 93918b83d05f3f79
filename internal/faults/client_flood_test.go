package faults

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A client sends a thousand requests at once, with one cookie. 128 of them wait, the rest
// are refused at once, and all others are served as before: their p99 at most doubles.
//
// Accepting a thousand requests has a cost of its own, on the same processors as all else
// here. So the same thousand also go to where there is no session, for comparison.
func TestFlood(t *testing.T) { // not parallel, since it measures
	r := redistest.Real(t)
	d := demotest.Start(t, "-redis", r.URL, "-lease", lease.String(), "-lock-wait", "1s", "-work", "50ms")
	users := newUsers(t, 8, func(float64) string { return d.URL })
	f := &flood{T: t, client: client(t), cookie: newUsers(t, 1, users[0].site)[0].cookie}
	f.client.Transport.(*http.Transport).MaxIdleConnsPerHost = floodSize
	f.fire(d.URL + "/none") // makes the connections, which would take longest

	rounds := unlessShort(5, 3)
	var alone, flooded, control []time.Duration
	row := noted(t, "1,000 requests with one cookie at once, a handler of 50 ms", "P5: the others' p99 at most doubles")
	for range rounds {
		alone = append(alone, p99(t, users, func() {}))
		flooded = append(flooded, p99(t, users, func() { f.fire(d.URL + "/set") }))
		control = append(control, p99(t, users, func() { f.fire(d.URL + "/none") }))
	}
	f.fire(d.URL + "/set") // its log lines say how many were left out before it
	refused := refusedAtOnce(t, d.Log())
	row.seen = fmt.Sprintf("p99 of others %v alone, %v flooded, %v when the thousand need no session; %d of %d refused at once",
		median(alone), median(flooded), median(control), refused, rounds*floodSize)
	if limit := 2 * max(median(alone), median(control)); median(flooded) > limit {
		t.Errorf("%s", row.seen)
	}
	if most := rounds * (floodSize - 129); refused < most*9/10 { // a place becomes free now and then
		t.Errorf("only %d requests were refused at once, want %d", refused, most)
	}
}

// refusedAtOnce returns how many requests were refused at once: those with a log line, and those
// that a line says were left out.
func refusedAtOnce(t *testing.T, log string) (refused int) {
	t.Helper()
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "kind=too_many_waiters") {
			continue
		}
		refused++
		if _, rest, ok := strings.Cut(line, "left_out="); ok {
			digits, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			n, err := strconv.Atoi(digits)
			if err != nil {
				t.Errorf("the log says %s", line)
			}
			refused += n
		}
	}
	return refused
}

const floodSize = 1000

type flood struct {
	*testing.T
	client *http.Client
	cookie string
}

// fire sends all requests at once and waits for the answers.
func (f *flood) fire(at string) {
	var all sync.WaitGroup
	for range floodSize {
		all.Go(func() {
			req, _ := http.NewRequest(http.MethodPost, at, strings.NewReader("name=flood"))
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Cookie", f.cookie)
			res, err := f.client.Do(req)
			if err != nil {
				f.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body) // so that the connection is used again
			res.Body.Close()
		})
	}
	all.Wait()
}

// p99 returns the 99th percentile of the times that users' requests take while something
// happens, and for at least a second.
func p99(t *testing.T, users []*user, happens func()) time.Duration {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var mu sync.Mutex
	var took []time.Duration
	var working sync.WaitGroup
	for _, u := range users {
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				begun := time.Now()
				if status := u.set(u.site(0), fmt.Sprint("work", n%100)); status != http.StatusOK {
					t.Errorf("another's request was answered with %d", status)
				}
				mu.Lock()
				took = append(took, time.Since(begun))
				mu.Unlock()
			}
		})
	}
	happens()
	working.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}

func median(of []time.Duration) time.Duration {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2].Round(time.Millisecond)
}
