package faults

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// The pool has one connection or two, and is shared with other code, which takes all of
// them for a while: for less than the time-out, and for more. No request may notice, since
// the store takes none from it.
func TestWirePoolExhausted(t *testing.T) {
	for _, size := range []int{1, 2} {
		for _, wait := range []bool{true, false} {
			t.Run(fmt.Sprintf("size%dwait%v", size, wait), func(t *testing.T) {
				t.Parallel()
				r := redistest.Real(t)
				row := noted(t, fmt.Sprintf("a pool of %d, Wait %v, all taken by another for 0.5 s, then for 3 s", size, wait),
					"P5: no request notices")

				// Two sites compete for the sessions, like two processes.
				pool, other := poolOf(t, r.Addr, size), poolOf(t, r.Addr, size)
				pool.Wait, other.Wait = wait, wait
				of, with := store.Options{Lease: lease}, middleware.Options{LockWait: lockWait}
				sites := []*site{newSite(t, pool, of, with), newSite(t, other, of, with)}
				all := newUsers(t, 6, func(random float64) string { return sites[int(random*2)].URL })

				for _, d := range []time.Duration{500 * time.Millisecond, 3 * time.Second} {
					before := unanswered(all)
					var working sync.WaitGroup
					working.Go(func() { workFor(t.Context(), all, d+time.Second) })
					time.Sleep(100 * time.Millisecond)
					taken := occupy(t, pool, size)
					time.Sleep(d)
					for _, c := range taken {
						c.Close()
					}
					begun := time.Now()
					for _, u := range all {
						eventually(t, lease+timeout, "a write is answered", func() bool {
							return u.set(sites[0].URL, fmt.Sprint(u.name, "-after-", d)) == http.StatusOK
						})
					}
					row.recovered = time.Since(begun)
					working.Wait()
					if n := unanswered(all) - before; n > 0 {
						t.Errorf("while the pool was taken for %v, %d requests were not answered", d, n)
					}
				}
				sum := lastLook(t, all)
				if limit := lockWait + 2*timeout*5/4 + time.Second; sum.longest > limit {
					t.Errorf("a request took %v", sum.longest)
				}
				row.seen = sum.String()
				allFree(t, r)
			})
		}
	}
}

// occupy takes all connections of a pool.
func occupy(t *testing.T, pool *redis.Pool, size int) (taken []redis.Conn) {
	t.Helper()
	for len(taken) < size {
		c := pool.Get()
		if _, err := c.Do("PING"); err == nil {
			taken = append(taken, c)
		} else {
			c.Close() // the pool is exhausted
		}
	}
	return taken
}

func unanswered(all []*user) (n int) {
	for _, u := range all {
		u.mu.Lock()
		n += u.silent
		u.mu.Unlock()
	}
	return n
}

// Many requests wait for a session, and the pool has a single connection. Neither they nor the
// holder ever take it, so others get it at once.
func TestWirePoolAndWaiters(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	pool := poolOf(t, r.Addr, 1)
	pool.Wait = false // finding none is an error
	h := newSite(t, pool, store.Options{Lease: lease}, middleware.Options{LockWait: lockWait})
	begun, free := make(chan bool), make(chan bool)
	h.HandleFunc("POST /hold", func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-free
		session.FromContext(r.Context()).Set("param_held", 1)
	})
	const waiters = 100
	gotAtOnce := 0
	row := noted(t, "100 wait for a session, and the pool has one connection", "P5: waiters hold no connection, the holder can release")

	u := newUsers(t, 1, h.at)[0]
	released := make(chan time.Time, 1)
	go func() {
		_, _, _ = u.request(t.Context(), http.MethodPost, h.URL+"/hold", nil)
		released <- time.Now()
	}()
	<-begun
	var running sync.WaitGroup
	for i := range waiters {
		running.Go(func() {
			if status := u.set(h.URL, fmt.Sprint("waiter", i)); status != http.StatusOK {
				t.Errorf("a waiter was answered with %d", status)
			}
		})
	}
	for range 20 {
		time.Sleep(25 * time.Millisecond)
		c := pool.Get()
		if _, err := c.Do("PING"); err == nil {
			gotAtOnce++
		}
		c.Close()
	}
	if gotAtOnce < 20 {
		t.Errorf("another got the connection %d times of 20", gotAtOnce)
	}
	since := time.Now()
	close(free)
	took := (<-released).Sub(since)
	row.seen = fmt.Sprintf("%d times of 20 another got it at once; the holder released after %v", gotAtOnce, took.Round(time.Millisecond))
	if took > timeout {
		t.Errorf("the holder released after %v", took)
	}
	running.Wait()
	u.asked["held"] = true
	if sum := lastLook(t, []*user{u}); sum.answered != waiters {
		t.Errorf("%v, want %d writes", sum, waiters)
	}
	allFree(t, r)
}
