package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/demotest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// drip sends the head of a request, and then one byte of the body per interval, until ctx ends. It
// returns the response up to then.
func drip(ctx context.Context, t *testing.T, site, head, cookie, body string, each time.Duration) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(site, "http://"))
	if err != nil {
		t.Error(err)
		return ""
	}
	go func() {
		_, _ = fmt.Fprintf(conn, "POST /set HTTP/1.1\r\nHost: site\r\nCookie: %s\r\nContent-Type: application/x-www-form-urlencoded\r\n%s\r\n", cookie, head)
		for i := 0; i < len(body) && ctx.Err() == nil; i++ {
			_, _ = conn.Write([]byte{body[i]}) // the site may have closed the connection
			pause(ctx, each)
		}
		<-ctx.Done()
		conn.Close()
	}()
	answer, _ := io.ReadAll(conn) // ReadAll ends when conn is closed
	return string(answer)
}

// Many clients send their bodies one byte per second, or stop in the middle. They hold no session: small
// bodies are read before the session is locked.
func TestClientsDripBodies(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	d := demotest.Start(t, "-redis", r.URL, "-lease", lease.String(), "-lock-wait", lockWait.String())
	u := newUsers(t, 1, func(float64) string { return d.URL })[0]
	const clients = 50
	served, longest := 0, time.Duration(0)
	row := noted(t, "50 clients send a byte per second, 50 stop in the middle, all with one cookie", "P5: they hold nothing")
	files := d.Files(t)
	ctx, stop := context.WithCancel(t.Context())
	var dripping sync.WaitGroup
	for range clients {
		for _, each := range []time.Duration{time.Second, time.Hour} {
			dripping.Go(func() {
				if answer := drip(ctx, t, d.URL, "Content-Length: 1000\r\n", u.cookie, "name=drip"+strings.Repeat("x", 991), each); answer != "" {
					t.Errorf("half a body was answered with %q", answer)
				}
			})
		}
	}
	eventually(t, timeout, "all are connected", func() bool { return d.Files(t) >= files+2*clients })
	for begun := time.Now(); time.Since(begun) < unlessShort(3*time.Second, 1500*time.Millisecond); served++ {
		sent := time.Now()
		if status := u.set(d.URL, fmt.Sprint("quick", served)); status != http.StatusOK {
			t.Errorf("another request was answered with %d", status)
		}
		longest = max(longest, within(t, "another", sent, lease))
	}
	row.seen = fmt.Sprintf("%d other requests served meanwhile, longest %v", served, longest.Round(time.Millisecond))
	stop()
	dripping.Wait()
	lastLook(t, []*user{u}) // fails if half a body has stored a name
}

// These are the exceptions to P5 in middleware/PROMISES.md: a body that is large, of unknown length, or announced
// with Expect: 100-continue is read while the session is held. MaxHold limits the time.
func TestClientsDripWhatIsReadLate(t *testing.T) {
	const maxHold = time.Second
	for name, head := range map[string]string{
		"unknown length": "Transfer-Encoding: chunked\r\n",
		"large":          "Content-Length: 100000\r\n",
		"expect":         "Content-Length: 100\r\nExpect: 100-continue\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			h := newSite(t, poolOf(t, r.Addr, 8), store.Options{Lease: lease}, middleware.Options{LockWait: lockWait, MaxHold: maxHold})
			u := newUsers(t, 1, h.at)[0]
			row := noted(t, "a client holds its session by a body that stops: "+name, "P5's exception: other requests wait for at most MaxHold (1 s)")
			ctx, stop := context.WithCancel(t.Context())
			var dripping sync.WaitGroup
			dripping.Go(func() { drip(ctx, t, h.URL, head, u.cookie, "", time.Hour) })
			eventually(t, timeout, "the session is held", func() bool { return len(guards(t, r)) > 0 })
			begun := time.Now()
			if status := u.set(h.URL, "other"); status != http.StatusOK {
				t.Errorf("another request was answered with %d", status)
			}
			waited := within(t, "another", begun, 3*maxHold)
			row.seen = fmt.Sprintf("another request waited for %v", waited.Round(time.Millisecond))
			if waited < maxHold/4 {
				t.Error(row.seen)
			}
			stop()
			dripping.Wait()
			lastLook(t, []*user{u})
			allFree(t, r)
		})
	}
}

// A client sends a thousand requests at once, with one cookie, and another process holds its session. 128 of them wait,
// the rest are refused at once, and all other clients are served meanwhile. How much longer the others wait is only
// recorded: accepting a thousand requests uses the same processors as the rest of the test.
func TestFlood(t *testing.T) { // not parallel, since it measures
	const flood, waiters, long = 1000, 128, 5 * time.Minute
	r := redistest.Real(t)
	d := demotest.Start(t, "-redis", r.URL, "-lease", patient.String(), "-lock-wait", long.String(), "-work", "50ms")
	elsewhere := newSite(t, poolOf(t, r.Addr, 8), store.Options{Lease: patient}, middleware.Options{MaxHold: long})
	held, free := make(chan struct{}), make(chan struct{})
	elsewhere.HandleFunc("POST /hold", func(http.ResponseWriter, *http.Request) {
		close(held)
		<-free
	})
	users := newUsers(t, 8, func(float64) string { return d.URL })
	attacker := newUsers(t, 1, users[0].site)[0]
	row := noted(t, "1,000 requests with one cookie at once, a handler of 50 ms",
		"P5: excess requests are refused at once, other sessions are served")
	alone := longestOf(t, users, func() { pause(t.Context(), time.Second) })

	var holding sync.WaitGroup
	defer holding.Wait()
	defer close(free)
	holding.Go(func() { attacker.ask(context.Background(), http.MethodPost, elsewhere.URL+"/hold", nil) })
	<-held
	var refused atomic.Int64
	flooded := longestOf(t, users, func() {
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer leave()
		for range flood {
			all.Go(func() {
				got := attacker.ask(ctx, http.MethodPost, d.URL+"/set", url.Values{"name": {"flood"}})
				if got.status == http.StatusServiceUnavailable {
					refused.Add(1)
				} else if ctx.Err() == nil {
					t.Errorf("a request of the flood was answered with %+v", got)
				}
			})
		}
		eventually(t, 30*time.Second, "the rest is refused", func() bool { // but for one that tries to get the session
			return refused.Load() >= flood-waiters-1
		})
		for _, u := range users {
			if status := u.set(d.URL, "meanwhile"); status != http.StatusOK {
				t.Errorf("while the flood waits, another's request was answered with %d", status)
			}
		}
		if n := refused.Load(); n > flood-waiters || strings.Count(d.Log(), "kind=too_many_waiters") == 0 {
			t.Errorf("%d of %d requests were refused, though %d may wait; or there is no word in the log", n, flood, waiters)
		}
	})
	row.seen = fmt.Sprintf("the longest wait of other sessions was %v alone, %v flooded; %d of %d were refused",
		alone.Round(time.Millisecond), flooded.Round(time.Millisecond), refused.Load(), flood)
}

// longestOf returns the longest time of users' requests while something happens. All requests must succeed.
func longestOf(t *testing.T, users []*user, happens func()) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
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
				longest.Store(max(longest.Load(), int64(time.Since(begun))))
			}
		})
	}
	happens()
	stop()
	working.Wait()
	return time.Duration(longest.Load())
}
