package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// Clients go away at random moments of their requests. Each request writes two values,
// and both are stored or neither is; both, if the handler has returned, even if the client
// had gone.
func TestClientsGoAway(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	h := newSite(t, poolOf(t, r.Addr, 8), store.Options{Lease: lease}, middleware.Options{LockWait: lockWait})
	var mu sync.Mutex
	done, answered, left := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	h.HandleFunc("POST /pair", func(w http.ResponseWriter, r *http.Request) {
		s, name := session.FromContext(r.Context()), r.PostFormValue("name")
		s.Set("param_"+name+"-first", 1)
		time.Sleep(500 * time.Microsecond)
		s.Set("param_"+name+"-second", 1)
		mu.Lock()
		defer mu.Unlock()
		done[name] = true
	})
	const requests, batch = 500, 50
	row := noted(t, fmt.Sprintf("%d requests, most of whose clients go away at random moments", requests),
		"P2, P5: their place is free at once, their commit stays, nothing half")

	u := newUsers(t, 1, h.at)[0]
	random := chance(14)
	for n := 0; n < requests; n += batch {
		var running sync.WaitGroup
		for i := range batch {
			patience, name := time.Duration(random.Int64N(int64(40*time.Millisecond))), fmt.Sprint("pair", n+i)
			running.Go(func() {
				status := u.impatient(h.URL+"/pair", name, patience)
				mu.Lock()
				defer mu.Unlock()
				switch status {
				case http.StatusOK:
					answered[name] = true
				case 0:
					left[name] = true
				default:
					t.Errorf("%s was answered with %d", name, status)
				}
			})
		}
		running.Wait()
	}
	begun := time.Now()
	if status := u.set(h.URL, "last"); status != http.StatusOK {
		t.Errorf("the next was answered with %d", status)
	}
	if row.recovered = time.Since(begun); row.recovered > 2*time.Second {
		t.Errorf("the next waited for %v", row.recovered)
	}

	_, body, err := u.request(t.Context(), http.MethodGet, h.URL+"/params", nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := json.Unmarshal([]byte(body), &names); err != nil {
		t.Fatal(err)
	}
	halves := make(map[string]int)
	for _, name := range names {
		name, _, _ = strings.Cut(name, "-")
		halves[name]++
	}
	delete(halves, "last")
	kept := 0
	for name, n := range halves {
		if n != 2 || !answered[name] && !left[name] {
			t.Errorf("%s is half stored", name)
		}
		if left[name] {
			kept++
		}
	}
	for name := range answered {
		if halves[name] == 0 {
			t.Errorf("%s was answered, and is not stored", name)
		}
	}
	for name := range done {
		if halves[name] == 0 {
			t.Errorf("the handler of %s returned, and nothing is stored", name)
		}
	}
	gone := len(left)
	row.seen = fmt.Sprintf("%d went away, the writes of %d of them were kept", gone, kept)
	if gone < requests/10 || kept == 0 || len(answered) == 0 {
		t.Errorf("%d clients went away, and %d of their writes were kept; %d were answered: too few of one kind", gone, kept, len(answered))
	}
	allFree(t, r)
}

// impatient makes a request and goes away after a while; the status is 0 then.
func (u *user) impatient(at, name string, patience time.Duration) (status int) {
	ctx, leave := context.WithTimeout(context.Background(), patience)
	defer leave()
	res, _, err := u.request(ctx, http.MethodPost, at, url.Values{"name": {name}})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return 0
	case err != nil:
		return -1
	}
	return res.StatusCode
}

// As many clients as may wait for one session do so; then all of them go away. Others can
// wait in their place.
func TestClientsLeaveTheLine(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	const places = 128 // the default
	h := newSite(t, poolOf(t, r.Addr, 8), store.Options{Lease: lease}, middleware.Options{LockWait: lockWait})
	begun, free := make(chan bool), make(chan bool)
	h.HandleFunc("POST /hold", func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-free
	})
	row := noted(t, "all 128 who wait for a session go away", "P5: their places are free at once")
	u := newUsers(t, 1, h.at)[0]
	var holder, first, second sync.WaitGroup
	holder.Go(func() { _, _, _ = u.request(t.Context(), http.MethodPost, h.URL+"/hold", nil) })
	<-begun

	ctx, leave := context.WithCancel(t.Context())
	var refused atomic.Int64
	const more = 5
	for range places + more {
		first.Go(func() {
			switch status, err := u.wait(ctx, h.URL); {
			case status == http.StatusServiceUnavailable:
				refused.Add(1)
			case !errors.Is(err, context.Canceled):
				t.Errorf("a waiter got %d, %v", status, err)
			}
		})
	}
	eventually(t, lockWait/2, "all places are taken", func() bool { return refused.Load() == more })
	left := time.Now()
	leave()
	first.Wait()
	eventually(t, lockWait/2, "a place is free", func() bool {
		ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer leave()
		row.recovered = time.Since(left)
		status, _ := u.wait(ctx, h.URL)
		return status == 0 // it was not refused, and has waited
	})
	if row.recovered > time.Second {
		t.Errorf("no place was free for %v", row.recovered)
	}
	// As many as before find a place: those that went away have none.
	refused.Store(0)
	var served atomic.Int64
	for range places + more {
		second.Go(func() {
			switch status, err := u.wait(t.Context(), h.URL); status {
			case http.StatusOK:
				served.Add(1)
			case http.StatusServiceUnavailable:
				refused.Add(1)
			default:
				t.Errorf("one that came after them got %d, %v", status, err)
			}
		})
	}
	eventually(t, lockWait/2, "all places are taken again", func() bool { return refused.Load() >= more })
	close(free)
	holder.Wait()
	second.Wait()
	if served.Load() < places-1 { // the last one that tried for a place may just be leaving
		t.Errorf("%d that came after them were served, want %d", served.Load(), places)
	}
	allFree(t, r)
}

// wait makes a request that has to wait for its session, and goes away when ctx ends.
func (u *user) wait(ctx context.Context, site string) (status int, err error) {
	res, _, err := u.request(ctx, http.MethodPost, site+"/set", url.Values{"name": {"waiter"}})
	if err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}
