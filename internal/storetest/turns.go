package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// Turns checks that processes which compete for one session get it about equally often. open returns the
// store of one more process; all use the same Redis, and open closes them when the test ends.
func Turns(t *testing.T, open func(t testing.TB) *store.Store) {
	t.Helper()
	const processes, requests, enough = 4, 16, 100
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var served [processes]int
	all := 0
	var clients sync.WaitGroup
	for i := range served {
		st := records.Of(open(t))
		if i == 0 {
			if err := st.Create(ctx, "turns", []byte("{}"), records.Terms{}); err != nil {
				t.Fatal(err)
			}
		}
		for range requests {
			clients.Go(func() {
				for ctx.Err() == nil {
					h, _, err := st.Take(ctx, "turns", records.Terms{LockWait: time.Minute})
					if err == nil {
						time.Sleep(time.Millisecond) // the work
						err = h.Touch(context.WithoutCancel(ctx))
					}
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
							stop()
						}
						return // without a turn
					}
					mu.Lock()
					served[i]++
					if all++; all == enough*processes {
						stop()
					}
					mu.Unlock()
				}
			})
		}
	}
	clients.Wait()
	t.Logf("the processes had %d turns", served)
	// If turns are broken, one process gets fifty times as many as another.
	if most, least := slices.Max(served[:]), slices.Min(served[:]); most > 4*least {
		t.Errorf("one process had %d turns, and another one %d", most, least)
	}
}
