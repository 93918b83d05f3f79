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

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
	"github.com/a2139e8d/latchkey/testdata/redistest"
)

// Clients go away at any moment of their request. Each request writes two things; both
// are there, or none; both, if the handler came to its end, whoever was there to see it.
func TestClientsGoAway(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	h := build(t, poolOf(t, r.Addr, 8), store.Options{Lease: lease}, middleware.Options{LockWait: lockWait})
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
	kept, gone, free := 0, 0, time.Duration(0)
	t.Cleanup(func() {
		note(row{fault: "500 clients go away at random moments", promise: "P2, P5: their place is free at once, their commit stays, nothing half",
			seen:      fmt.Sprintf("%d went away, the writes of %d of them were kept; then the next was served in %v", gone, kept, free.Round(time.Microsecond)),
			recovered: free, broken: t.Failed()})
	})

	g := invite(t, 1, h.at)[0]
	random := chance(14)
	for n := 0; n < requests; n += batch {
		var running sync.WaitGroup
		for i := range batch {
			patience, name := time.Duration(random.Int64N(int64(40*time.Millisecond))), fmt.Sprint("pair", n+i)
			running.Go(func() {
				status := g.impatient(h.URL+"/pair", name, patience)
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
	if status := g.set(h.URL, "last"); status != http.StatusOK {
		t.Errorf("the next was answered with %d", status)
	}
	if free = time.Since(begun); free > 2*time.Second {
		t.Errorf("the next waited for %v", free)
	}

	_, body, err := g.request(http.MethodGet, h.URL+"/params", nil)
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
	for name, n := range halves {
		if n != 2 || !answered[name] && !left[name] {
			t.Errorf("%s is there by half", name)
		}
		if left[name] {
			kept++
		}
	}
	for name := range answered {
		if halves[name] == 0 {
			t.Errorf("%s was answered, and is not there", name)
		}
	}
	for name := range done {
		if halves[name] == 0 {
			t.Errorf("the handler of %s came to its end, and nothing is there", name)
		}
	}
	if gone = len(left); gone < requests/10 || kept == 0 || len(answered) == 0 {
		t.Errorf("%d clients went away, and %d of their writes were kept; %d were answered: too few of one kind", gone, kept, len(answered))
	}
	eventually(t, lease, "no lock is left", func() bool { return locks(t, r) == 0 })
}

// impatient makes a request and goes away after a while; the status is 0 then.
func (g *stranger) impatient(at, name string, patience time.Duration) (status int) {
	ctx, leave := context.WithTimeout(context.Background(), patience)
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(url.Values{"name": {name}}.Encode()))
	if err != nil {
		return -1
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Cookie", g.cookie)
	res, err := g.client.Do(req)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return 0
	case err != nil:
		return -1
	}
	res.Body.Close()
	return res.StatusCode
}

// All places in the line of a session are taken; then all those clients go away. Others
// find the line empty.
func TestClientsLeaveTheLine(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	const places = 128 // the default
	h := build(t, poolOf(t, r.Addr, 8), store.Options{Lease: lease}, middleware.Options{LockWait: lockWait})
	begun, free := make(chan bool), make(chan bool)
	h.HandleFunc("POST /hold", func(w http.ResponseWriter, r *http.Request) {
		begun <- true
		<-free
	})
	var freed time.Duration
	t.Cleanup(func() {
		note(row{fault: "all 128 who wait for a session go away", promise: "P5: their places are free at once",
			seen: fmt.Sprintf("free after %v", freed.Round(time.Millisecond)), recovered: freed, broken: t.Failed()})
	})
	g := invite(t, 1, h.at)[0]
	var holder, line, second sync.WaitGroup
	holder.Go(func() { _, _, _ = g.request(http.MethodPost, h.URL+"/hold", nil) })
	<-begun

	ctx, leave := context.WithCancel(t.Context())
	var refused atomic.Int64
	const more = 5
	for range places + more {
		line.Go(func() {
			switch status, err := g.wait(ctx, h.URL); {
			case status == http.StatusServiceUnavailable:
				refused.Add(1)
			case !errors.Is(err, context.Canceled):
				t.Errorf("a waiter got %d, %v", status, err)
			}
		})
	}
	eventually(t, lockWait/2, "the line is full", func() bool { return refused.Load() == more })
	left := time.Now()
	leave()
	line.Wait()
	eventually(t, lockWait/2, "a place is free", func() bool {
		ctx, leave := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer leave()
		freed = time.Since(left)
		status, _ := g.wait(ctx, h.URL)
		return status == 0 // it was let in
	})
	if freed > time.Second {
		t.Errorf("no place was free for %v", freed)
	}
	for range places / 2 {
		second.Go(func() {
			if status, err := g.wait(t.Context(), h.URL); status != http.StatusOK {
				t.Errorf("who came after them got %d, %v", status, err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	close(free)
	holder.Wait()
	second.Wait()
	eventually(t, lease, "no lock is left", func() bool { return locks(t, r) == 0 })
}

// wait makes a request that has to wait for its session, until ctx ends.
func (g *stranger) wait(ctx context.Context, site string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, site+"/set?name=waiter", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Cookie", g.cookie)
	res, err := g.client.Do(req)
	if err != nil {
		return 0, err
	}
	res.Body.Close()
	return res.StatusCode, nil
}
