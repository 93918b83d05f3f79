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
		pause(context.Background(), 500*time.Microsecond) // although the client may leave
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
	row.recovered = within(t, "the next", begun, 2*time.Second)

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
	for _, names := range []map[string]bool{answered, done} {
		for name := range names {
			if halves[name] == 0 {
				t.Errorf("%s was answered, or its handler returned, and it is not stored", name)
			}
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
