package records

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P1: 50 requests in each of three processes write to one session at once. No write is lost, although Redis
// forgets its scripts all the time.
func TestNoLostUpdate(t *testing.T) {
	t.Parallel()
	const processes, requests = 3, 50
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		create(t, process(t, s), "0")
		var done atomic.Bool
		var flushing, all sync.WaitGroup
		flushing.Go(func() {
			for !done.Load() {
				s.Do(t, "SCRIPT", "FLUSH")
			}
		})
		for range processes {
			st := process(t, s)
			for range requests {
				all.Go(func() { increment(t, st) })
			}
		}
		all.Wait()
		done.Store(true)
		flushing.Wait()
		wantData(t, s, fmt.Sprint(processes*requests))
		wantFree(t, s)
	})
}
