package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// increment adds 1 to the number in the session.
func increment(t *testing.T, st *Store) {
	t.Helper()
	h, err := st.Take(t.Context(), theID, Terms{LockWait: time.Minute})
	if err != nil {
		t.Error(err)
		return
	}
	n := number(t, h.Record)
	if err := h.Save(t.Context(), fmt.Append(nil, n+1)); err != nil {
		t.Error(err)
	}
}

// The promise of the package: 50 requests in each of three processes write to
// one session at once, and nothing is lost.
func TestNoLostUpdate(t *testing.T) {
	t.Parallel()
	const processes, requests = 3, 50
	eachFence(t, func(t *testing.T, s *site) {
		create(t, s.process(t), "0")
		var all sync.WaitGroup
		for range processes {
			st := s.process(t)
			for range requests {
				all.Go(func() { increment(t, st) })
			}
		}
		all.Wait()
		wantData(t, s, fmt.Sprint(processes*requests))
		wantFree(t, s)
	})
}

// Two connections are enough for a hundred requests: who waits for a session
// needs none, and who holds it always gets one to give it back.
func TestSmallPool(t *testing.T) {
	t.Parallel()
	const requests = 100
	eachFence(t, func(t *testing.T, s *site) {
		st := s.open(s.Pool(t, 2), s.locks.Pool(t, 2), patient)
		create(t, st, "0")
		var all sync.WaitGroup
		for range requests {
			all.Go(func() { increment(t, st) })
		}
		all.Wait()
		wantData(t, s, fmt.Sprint(requests))

		for i := range requests {
			all.Go(func() { ownSession(t, st, fmt.Sprint(i)) })
		}
		all.Wait()
	})
}

// ownSession uses a session that nobody else does.
func ownSession(t *testing.T, st *Store, id string) {
	ctx := t.Context()
	if err := st.Create(ctx, id, []byte("new"), Terms{}); err != nil {
		t.Error(err)
		return
	}
	h, err := st.Take(ctx, id, Terms{})
	if err != nil {
		t.Error(err)
		return
	}
	if err := h.Save(ctx, []byte("saved "+id)); err != nil {
		t.Error(err)
	}
	if r, err := st.Load(ctx, id, Terms{}); string(r.Data) != "saved "+id || err != nil {
		t.Errorf("session %s has %q, %v", id, r.Data, err)
	}
}

// Redis may be told to forget its scripts at any time.
func TestScriptFlushUnderLoad(t *testing.T) {
	t.Parallel()
	const requests = 50
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "0")
		var done atomic.Bool
		var flushing, all sync.WaitGroup
		flushing.Go(func() {
			for !done.Load() {
				s.Do(t, "SCRIPT", "FLUSH")
				s.locks.Do(t, "SCRIPT", "FLUSH")
			}
		})
		for range requests {
			all.Go(func() { increment(t, st) })
		}
		all.Wait()
		done.Store(true)
		flushing.Wait()
		wantData(t, s, fmt.Sprint(requests))
	})
}

// A living holder keeps its session for longer than a lease.
func TestWatchdogExtends(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, s *redistest.Server) {
		o := patient
		o.Lease = 1500 * time.Millisecond
		st := New(s.Pool(t, 2), o)
		create(t, st, "1")
		h := take(t, st)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		h.OnLost(cancel)
		waitUntilExtended(t, s, theLock)
		if ctx.Err() != nil {
			t.Errorf("the lock was lost: %v", context.Cause(ctx))
		}
		save(t, h, "2")
	})
}
