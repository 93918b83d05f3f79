package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/store"
)

// A session runs out when no request has come for its TTL. It does not while one
// holds it or waits for it, however long that takes. What is tested here is that time
// passes, so these tests sleep.

// eachLock runs f with the lock beside the record and with one of package locker.
func eachLock(t *testing.T, f func(t *testing.T, r *redistest.Server, process func(lease time.Duration) *store.Store)) {
	t.Helper()
	t.Run("beside", func(t *testing.T) {
		t.Parallel()
		redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
			f(t, r, func(lease time.Duration) *store.Store {
				return open(t, r, store.Options{Lease: lease, Timeout: patient.Timeout})
			})
		})
	})
	t.Run("with a Locker", func(t *testing.T) {
		t.Parallel()
		r := redistest.Real(t)
		f(t, r, func(lease time.Duration) *store.Store {
			return open(t, r, store.Options{
				Timeout: patient.Timeout,
				Locker:  locker.NewSpin(r.Pool(t, 8), locker.Options{Lease: lease, Wait: time.Minute, Timeout: patient.Timeout}),
			})
		})
	})
}

// A request that comes in time puts the timeout off, whatever it does then.
func TestARequestInTimePutsTheTimeoutOff(t *testing.T) {
	t.Parallel()
	eachLock(t, func(t *testing.T, r *redistest.Server, process func(time.Duration) *store.Store) {
		st, terms := process(patient.Lease), store.Terms{TTL: time.Hour}
		create(t, st, "0", terms)
		nobodyCame(t, r)
		h := take(t, st, terms)
		if l := left(t, r, theRecord); l < terms.TTL-time.Minute {
			t.Errorf("a request has come and the session has %v left, its TTL is %v", l, terms.TTL)
		}
		h.Release(t.Context())
	})
}

// Its end does so again, also if it changed nothing, and if it panicked. With a Locker the
// end of a short request does not count: that would cost an exchange more.
func TestTheEndOfARequestPutsTheTimeoutOff(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		st, terms := open(t, r, patient), store.Terms{TTL: time.Hour}
		create(t, st, "0", terms)
		for what, end := range map[string]func(ctx context.Context, h *store.Hold) error{
			"reads":  func(ctx context.Context, h *store.Hold) error { return h.Touch(ctx) },
			"panics": func(ctx context.Context, h *store.Hold) error { h.Release(ctx); return nil },
		} {
			h := take(t, st, terms)
			nobodyCame(t, r)
			if err := end(t.Context(), h); err != nil {
				t.Error(err)
			}
			if l := left(t, r, theRecord); l < terms.TTL-time.Minute {
				t.Errorf("a request that %s has ended and the session has %v left, its TTL is %v", what, l, terms.TTL)
			}
		}
	})
}

// nobodyCame makes the session look as if nobody had come for almost its TTL.
func nobodyCame(t *testing.T, r *redistest.Server) {
	t.Helper()
	r.Do(t, "PEXPIRE", theRecord, (10 * time.Second).Milliseconds())
}

// Somebody holds the session for longer than the TTL, be that longer than the lease
// or shorter. Others can read it all the time, and who wants it gets it, with what the
// holder has left.
func TestAHeldSessionDoesNotRunOut(t *testing.T) {
	t.Parallel()
	const ttl, hold = 500 * time.Millisecond, 1500 * time.Millisecond
	terms := store.Terms{TTL: ttl, LockWait: time.Minute}
	for name, lease := range map[string]time.Duration{
		"lease like the TTL":        ttl,
		"lease longer than the TTL": 10 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLock(t, func(t *testing.T, r *redistest.Server, process func(time.Duration) *store.Store) {
				here, elsewhere, reader := process(lease), process(lease), process(lease)
				create(t, here, "0", terms)
				h := take(t, here, terms)
				inTime := begin(t, elsewhere, terms) // it waits for longer than the TTL
				over := time.After(hold)
				time.Sleep(2 * ttl)
				late := begin(t, reader, terms) // it comes when the TTL is over
				select {
				case <-inTime.done:
					t.Errorf("who came in time and waits got an answer while the session was held: %v", inTime.err)
				case <-late.done:
					t.Errorf("who came late got an answer while the session was held: %v", late.err)
				case <-over:
				}
				save(t, h, "held")

				// The two that wait may get it in any order.
				for range 2 {
					select {
					case <-inTime.done:
						touch(t, inTime.wait(t, "held"))
						inTime.done = nil
					case <-late.done:
						touch(t, late.wait(t, "held"))
						late.done = nil
					}
				}
				if record, err := reader.Load(t.Context(), theID, terms); err != nil || string(record.Data) != "held" {
					t.Errorf("in the end there is %q, %v", record.Data, err)
				}
				runsOut(t, r, reader, terms)
			})
		})
	}
}

func touch(t *testing.T, h *store.Hold) {
	t.Helper()
	if err := h.Touch(t.Context()); err != nil {
		t.Error(err)
	}
}

// runsOut checks that a session that nobody holds any more does run out, and leaves
// nothing.
func runsOut(t *testing.T, r *redistest.Server, st *store.Store, terms store.Terms) {
	t.Helper()
	eventually(t, "the session runs out", func() bool { return len(r.Keys(t)) == 0 })
	terms.LockWait = locker.NoWait
	_, err := st.Take(t.Context(), theID, terms)
	wantError(t, "Take", err, store.ErrNotFound)
}

// A read without the lock finds a held session at any time.
func TestAHeldSessionIsReadAtAnyTime(t *testing.T) {
	t.Parallel()
	const ttl, hold = 500 * time.Millisecond, 1500 * time.Millisecond
	terms := store.Terms{TTL: ttl}
	eachLock(t, func(t *testing.T, r *redistest.Server, process func(time.Duration) *store.Store) {
		st, reader := process(10*time.Second), process(10*time.Second)
		create(t, st, "0", terms)
		h := take(t, st, terms)
		time.Sleep(hold) // nobody reads meanwhile: that would put the time-out off
		wantData(t, reader, "0")
		save(t, h, "held")
		wantData(t, reader, "held")
	})
}

// A whole line of requests came in time, in one process. Each changes nothing and
// fails, so only that they came keeps the session. It is there for the last of them
// and for those after it.
func TestALineThatCameInTimeFindsItsSession(t *testing.T) {
	t.Parallel()
	const ttl, n = 500 * time.Millisecond, 6
	terms := store.Terms{TTL: ttl, LockWait: time.Minute}
	eachLock(t, func(t *testing.T, r *redistest.Server, process func(time.Duration) *store.Store) {
		st, other := process(10*time.Second), process(10*time.Second)
		create(t, st, "0", terms)
		first := take(t, st, terms)
		line := make([]*taking, n)
		for i := range line {
			line[i] = begin(t, st, terms)
		}
		time.Sleep(ttl / 2)
		first.Release(t.Context())
		for served := range n {
			h := anyOf(t, line)
			time.Sleep(ttl / 2)
			if served < n-1 {
				h.Release(t.Context())
			} else {
				save(t, h, "the last")
			}
		}
		wantData(t, other, "the last")
	})
}

// anyOf waits for one of those that wait, whose place in line becomes nil.
func anyOf(t *testing.T, line []*taking) *store.Hold {
	t.Helper()
	var h *store.Hold
	eventually(t, "the next one in line has the session", func() bool {
		for i, w := range line {
			if w == nil {
				continue
			}
			select {
			case <-w.done:
				h, line[i] = w.wait(t, "0"), nil
				return true
			default:
			}
		}
		return false
	})
	return h
}

// The holder was killed, so nobody puts anything off for it. Who waits for the end of
// its lease came in time all the same.
func TestWhoWaitsForADeadHolderFindsItsSession(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	terms := store.Terms{TTL: ttl, LockWait: time.Minute}
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		st, other := open(t, r, patient), open(t, r, patient)
		create(t, other, "0", terms)
		r.Do(t, "SET", theLock, "killed", "PX", (2 * ttl).Milliseconds())
		h, err := st.Take(t.Context(), theID, terms)
		if errors.Is(err, store.ErrNotFound) {
			t.Fatalf("it waited for its session, which ran out meanwhile: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		save(t, h, "1")
		wantData(t, other, "1")
	})
}
