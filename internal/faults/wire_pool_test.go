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
)

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
