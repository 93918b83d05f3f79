package faults

import (
	"context"
	"encoding/json"
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

// Clients disconnect at random moments of their requests. Each request writes two values, and either both are
// stored or neither is. If the handler has returned, both are stored, even if the client had gone.
func TestClientsGoAway(t *testing.T) {
	t.Parallel()
	r := redistest.Real(t)
	h := newSite(t, poolOf(t, r.Addr, 8), store.Options{Lease: patient}, middleware.Options{LockWait: lockWait})
	var ended atomic.Int64 // handlers
	var mu sync.Mutex
	var kept []string // the names that must be stored; guarded by mu
	keep := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, name)
	}
	h.HandleFunc("POST /pair", func(w http.ResponseWriter, r *http.Request) {
		s, name := session.FromContext(r.Context()), r.PostFormValue("name")
		s.Set("param_"+name+"-first", 1)
		pause(context.Background(), 500*time.Microsecond) // the work goes on although the client may leave
		s.Set("param_"+name+"-second", 1)
		keep(name)
		ended.Add(1)
	})
	const requests, batch, most = 500, 50, 10_000
	row := noted(t, fmt.Sprintf("%d requests, most of whose clients disconnect at random moments", requests),
		"P2, P5: their place is free at once, their commit stays, no half commit")

	u := newUsers(t, 1, h.at)[0]
	// Each request has its own connection. The transport of net/http offers a connection to the next request as
	// soon as a response without a body has arrived. If the client gives up the earlier request just then, the
	// transport closes that connection.
	u.client.Transport.(*http.Transport).DisableKeepAlives = true
	random := chance(14)
	// How long clients wait is fitted to the machine, so that some are answered and others leave.
	longest := 40 * time.Millisecond
	var answered, left atomic.Int64
	few := func() bool {
		return left.Load() < requests/10 || answered.Load() == 0 || ended.Load() == answered.Load()
	}
	for n := 0; n < requests || few() && n < most; n += batch {
		answeredBefore, leftBefore := answered.Load(), left.Load()
		var running sync.WaitGroup
		for i := range batch {
			patience, name := time.Duration(random.Int64N(int64(longest))), fmt.Sprint("pair", n+i)
			running.Go(func() {
				ctx, leave := context.WithTimeout(context.Background(), patience)
				defer leave()
				switch got := u.ask(ctx, http.MethodPost, h.URL+"/pair", url.Values{"name": {name}}); {
				case got.status == http.StatusOK:
					answered.Add(1)
					keep(name)
				case got.status == 0 && ctx.Err() != nil:
					left.Add(1)
				default:
					t.Errorf("%s was answered with %+v", name, got)
				}
			})
		}
		running.Wait()
		switch {
		case answered.Load() == answeredBefore:
			longest = min(2*longest, lockWait/2)
		case left.Load() == leftBefore:
			longest /= 2
		}
	}
	begun := time.Now()
	if status := u.set(h.URL, "last"); status != http.StatusOK {
		t.Errorf("the next request was answered with %d", status)
	}
	row.recovered = within(t, "the next", begun, 2*time.Second)

	var names []string
	if err := json.Unmarshal([]byte(u.ask(t.Context(), http.MethodGet, h.URL+"/params", nil).text), &names); err != nil {
		t.Fatal(err)
	}
	halves := make(map[string]int)
	for _, name := range names {
		name, _, _ = strings.Cut(name, "-")
		halves[name]++
	}
	delete(halves, "last")
	for name, n := range halves {
		if n != 2 {
			t.Errorf("%s is half stored", name)
		}
	}
	for _, name := range kept {
		if halves[name] == 0 {
			t.Errorf("%s was confirmed, or its handler has returned, but it is not stored", name)
		}
	}
	gone, unheard := left.Load(), int64(len(halves))-answered.Load()
	row.seen = fmt.Sprintf("%d disconnected, the writes of %d of them were kept", gone, unheard)
	if gone < requests/10 || unheard <= 0 || answered.Load() == 0 {
		t.Errorf("%s; %d were answered: too few of one kind", row.seen, answered.Load())
	}
	allFree(t, r)
}
