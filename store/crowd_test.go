package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P1: 50 requests in each of three processes write to one session at once, and nothing is lost,
// although Redis forgets its scripts all the time.
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

// Two connections are enough for a hundred requests: who waits for a session
// needs none, and who holds it always gets one to give it back.
func TestSmallPool(t *testing.T) {
	t.Parallel()
	const requests = 100
	redistest.InFakeTime(t, func(t *testing.T, s *redistest.Server) {
		st := New(s.Pool(t, 2), patient)
		create(t, st, "0")
		var all sync.WaitGroup
		for i := range requests {
			all.Go(func() { increment(t, st) })
			all.Go(func() { ownSession(t, st, fmt.Sprint(i)) })
		}
		all.Wait()
		wantData(t, s, fmt.Sprint(requests))
	})
}

// ownSession uses a session that nobody else does.
func ownSession(t *testing.T, st *Store, id string) {
	save(t, ownHold(t, st, id), "saved "+id)
	if r, err := st.Load(t.Context(), id, Terms{}); string(r.Data) != "saved "+id || err != nil {
		t.Errorf("session %s has %q, %v", id, r.Data, err)
	}
}

// ownHold creates and takes it.
func ownHold(t *testing.T, st *Store, id string) *Hold {
	t.Helper()
	must(t, st.Create(t.Context(), id, []byte("new"), Terms{}))
	return takeID(t, st, id)
}
