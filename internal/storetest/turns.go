package storetest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/store"
)

// Turns checks that processes which compete for one session get it equally often. open returns the
// store of one more process; all have the same Redis, and are closed by it when the test ends.
func Turns(t *testing.T, open func(t testing.TB) *store.Store) {
	t.Helper()
	for _, processes := range []int{3, 4} {
		stores := make([]*store.Store, processes)
		for i := range stores {
			stores[i] = open(t)
		}
		id := "turns" + string(rune('0'+processes))
		if err := stores[0].Create(t.Context(), id, []byte("{}"), store.Terms{}); err != nil {
			t.Fatal(err)
		}
		served := takeTurns(t, stores, id)
		most, least := slices.Max(served), slices.Min(served)
		t.Logf("%d processes had %d turns: most ÷ least %.2f", processes, served, float64(most)/float64(least))
		// Where the turns break, one has fifty times as many as another.
		if 10*most > 13*least {
			t.Errorf("of %d processes one had %d turns, and another one %d", processes, most, least)
		}
	}
}

// takeTurns has 16 requests at a time in each process, until there were 500 for each of these, and
// returns how many each has served.
func takeTurns(t *testing.T, stores []*store.Store, id string) []int64 {
	const requests, enough = 16, 500
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served, all := make([]atomic.Int64, len(stores)), atomic.Int64{}
	var clients sync.WaitGroup
	for i, st := range stores {
		for range requests {
			clients.Go(func() {
				for ctx.Err() == nil {
					h, err := st.Take(ctx, id, store.Terms{LockWait: time.Minute})
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
							stop()
						}
						return
					}
					time.Sleep(time.Millisecond)
					if err := h.Touch(context.WithoutCancel(ctx)); err != nil {
						t.Error(err)
					}
					served[i].Add(1)
					if all.Add(1) == int64(enough*len(stores)) {
						stop()
					}
				}
			})
		}
	}
	clients.Wait()
	counts := make([]int64, len(stores))
	for i := range counts {
		counts[i] = served[i].Load()
	}
	return counts
}
