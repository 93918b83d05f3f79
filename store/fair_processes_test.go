package store_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/store"
)

// Processes that compete for one session take turns, however many requests each of
// them has, and however soon these give up: it is the process that waits, and
// whoever gives up in it makes room for the next in its line.

// A load is what the requests of a process do, one after another, until the end.
type load struct {
	requests int           // at a time
	handler  time.Duration // how long each holds the session
	wait     time.Duration // how long each waits at most
	leave    time.Duration // after which its client goes away, if that is not 0
}

// run makes requests until ctx ends, and counts those that were served and those
// that were not. They begin apart, so that they do not give up together.
func (l load) run(ctx context.Context, t *testing.T, st *store.Store, served, refused *atomic.Int64) {
	const apart = 200 * time.Millisecond
	var all sync.WaitGroup
	for i := range l.requests {
		all.Go(func() {
			time.Sleep(apart * time.Duration(i) / time.Duration(l.requests))
			for ctx.Err() == nil {
				if l.request(ctx, t, st) {
					served.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
}

// request reports whether it was served.
func (l load) request(ctx context.Context, t *testing.T, st *store.Store) bool {
	if l.leave > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.leave)
		defer cancel()
	}
	h, err := st.Take(ctx, theID, store.Terms{LockWait: l.wait})
	if err != nil {
		return false
	}
	time.Sleep(l.handler)
	if err := h.Touch(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
	return true
}

func TestABusyProcessGetsItsTurns(t *testing.T) {
	t.Parallel()
	const others = 3
	const wait, leave = 200 * time.Millisecond, 60 * time.Millisecond
	for name, busy := range map[string]load{
		"2 requests like the others":        {requests: 2, handler: 10 * time.Millisecond, wait: wait},
		"40 requests":                       {requests: 40, handler: 10 * time.Millisecond, wait: wait},
		"40 requests, slow ones":            {requests: 40, handler: 20 * time.Millisecond, wait: wait},
		"100 clients that leave":            {requests: 100, handler: 10 * time.Millisecond, wait: time.Minute, leave: leave},
		"100 clients that leave, slow ones": {requests: 100, handler: 20 * time.Millisecond, wait: time.Minute, leave: leave},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.Real(t)
			loads := []load{busy}
			for range others {
				loads = append(loads, load{requests: 2, handler: busy.handler, wait: time.Minute})
			}
			create(t, open(t, r, patient), "0", store.Terms{})
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			defer cancel()
			counts := make([]struct{ served, refused atomic.Int64 }, len(loads))
			var all sync.WaitGroup
			for i, l := range loads {
				st := open(t, r, patient)
				all.Go(func() { l.run(ctx, t, st, &counts[i].served, &counts[i].refused) })
			}
			all.Wait()

			served := make([]int64, len(loads))
			for i := range counts {
				served[i] = counts[i].served.Load()
			}
			t.Logf("served %d, the busy process first; %d of its requests gave up", served, counts[0].refused.Load())
			least, most := slices.Min(served), slices.Max(served)
			if least == 0 || float64(most)/float64(least) > 1.5 {
				t.Errorf("one process was served %d times and another %d", most, least)
			}
		})
	}
}
