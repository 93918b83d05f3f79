package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A holder lost its lock, and another has written since and holds the session
// now. Whatever the stale one does, nothing changes.
func TestStaleHolderChangesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		use  func(ctx context.Context, h *Hold) error
		want error
	}{
		"Save":    {func(ctx context.Context, h *Hold) error { return h.Save(ctx, []byte("stale")) }, ErrLost},
		"Destroy": {func(ctx context.Context, h *Hold) error { return h.Destroy(ctx) }, ErrLost},
		"Renew":   {func(ctx context.Context, h *Hold) error { return h.Renew(ctx, newID, []byte("stale")) }, ErrLost},
		"Touch":   {func(ctx context.Context, h *Hold) error { return h.Touch(ctx) }, nil},
		"Release": {func(ctx context.Context, h *Hold) error { h.Release(ctx); return nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachFence(t, func(t *testing.T, s *site) {
				create(t, s.process(t), "first")
				stale := take(t, s.process(t))
				s.locks.Do(t, "DEL", theLock) // a failover, say
				rightful := s.process(t)
				save(t, take(t, rightful), "rightful")
				h := take(t, rightful)

				record, _ := s.Get(t, theRecord)
				lock, _ := s.locks.Get(t, theLock)
				s.Do(t, "PEXPIRE", theRecord, 60_000)
				wantError(t, name, tt.use(t.Context(), stale), tt.want)
				if got, _ := s.Get(t, theRecord); got != record {
					t.Errorf("the record was %s and is %s", record, got)
				}
				wantExpiry(t, s.Server, theRecord, time.Minute)
				if got, _ := s.locks.Get(t, theLock); got != lock {
					t.Errorf("the lock was %s and is %s", lock, got)
				}
				eventually(t, "no record of the new id is left", func() bool { return !s.Exists(t, newRecord) })
				save(t, h, "rightful again")
				wantData(t, s, "rightful again")
			})
		})
	}
}

// A process is cut off from Redis for longer than its lease. It learns that its
// lock is lost, and cannot write when it is back.
func TestHolderThatWasCutOff(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		records, locks := redistest.NewProxy(t, s.Server), redistest.NewProxy(t, s.locks)
		o := patient
		o.Lease = 300 * time.Millisecond
		create(t, s.process(t), "first")
		stale := take(t, s.open(records.Pool(t, 8), locks.Pool(t, 8), o))
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		stale.OnLost(cancel)

		cut := func(redistest.Command) redistest.Fault { return redistest.DropCommand }
		records.Inject(cut)
		locks.Inject(cut)
		save(t, take(t, s.process(t)), "rightful") // waits for the end of the lease
		<-ctx.Done()
		wantError(t, "the holder's context", context.Cause(ctx), ErrLost)

		records.Inject(nil)
		locks.Inject(nil)
		wantError(t, "Save", stale.Save(t.Context(), []byte("stale")), ErrLost)
		wantData(t, s, "rightful")
		wantFree(t, s)
	})
}

// The next holder has given the session another id meanwhile. A logout that comes late finds the old
// id ended, but must not pass for done: the session goes on.
func TestALogoutAfterTheNextHoldersRenew(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		records, locks := redistest.NewProxy(t, s.Server), redistest.NewProxy(t, s.locks)
		o := patient
		o.Lease = 300 * time.Millisecond
		create(t, s.process(t), "first")
		stale := take(t, s.open(records.Pool(t, 8), locks.Pool(t, 8), o))
		lost := make(chan struct{})
		stale.OnLost(func(error) { close(lost) })

		cut := func(redistest.Command) redistest.Fault { return redistest.DropCommand }
		records.Inject(cut)
		locks.Inject(cut)
		rightful := s.process(t)
		wantError(t, "Renew", take(t, rightful).Renew(t.Context(), newID, []byte("second")), nil)
		<-lost

		records.Inject(nil)
		locks.Inject(nil)
		if err := stale.Destroy(t.Context()); !errors.Is(err, ErrLost) || errors.Is(err, ErrGone) {
			t.Errorf("Destroy: %v, want %v", err, ErrLost)
		}
		if r, err := rightful.Load(t.Context(), newID, Terms{}); string(r.Data) != "second" || err != nil {
			t.Errorf("the new id has %q, %v", r.Data, err)
		}
	})
}

// MaxHold is the end of any lease, however well the holder is.
func TestHeldTooLong(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "first")
		h, err := st.Take(t.Context(), theID, Terms{MaxHold: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		save(t, take(t, st), "next")
		wantError(t, "Save", h.Save(t.Context(), []byte("stale")), ErrLost)
		wantData(t, s, "next")

		// Who was told of it cannot save any more, whatever Redis says.
		h, err = st.Take(t.Context(), theID, Terms{MaxHold: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		token, _ := s.Get(t, theLock)
		<-h.lease.Lost()
		s.Do(t, "SET", theLock, token, "PX", 60_000)
		wantError(t, "Save", h.Save(t.Context(), []byte("late")), ErrLost)
		wantData(t, s, "next")
		eventually(t, "the lock is free", func() bool { return !s.locks.Exists(t, theLock) })
	})
}

// Beside the record it is the token in the lock that permits to write, whether
// or not another has written yet, or will.
func TestTokenIsTheFence(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "first")
		for name, lose := range map[string]func(){
			"deleted":     func() { s.Do(t, "DEL", theLock) },
			"overwritten": func() { s.Do(t, "SET", theLock, "ANOTHER", "PX", 60_000) },
			"empty":       func() { s.Do(t, "SET", theLock, "", "PX", 60_000) },
		} {
			for what, write := range map[string]func(h *Hold) error{
				"Save":    func(h *Hold) error { return h.Save(t.Context(), []byte("stale")) },
				"Destroy": func(h *Hold) error { return h.Destroy(t.Context()) },
				"Renew":   func(h *Hold) error { return h.Renew(t.Context(), newID, []byte("stale")) },
			} {
				s.Do(t, "DEL", theLock)
				h := take(t, st)
				lose()
				before, _ := s.Get(t, theLock)
				wantError(t, what+", lock "+name, write(h), ErrLost)
				if after, _ := s.Get(t, theLock); after != before {
					t.Errorf("%s, lock %s: the lock was %q and is %q", what, name, before, after)
				}
				wantData(t, s, "first")
				eventually(t, "no record of the new id is left over", func() bool { return !s.Exists(t, newRecord) })
			}
		}
	})
}

// With a lock from elsewhere it is the record that permits to write. If the lock
// is lost but nobody has written, no harm was done.
func TestRecordIsTheFence(t *testing.T) {
	t.Parallel()
	elsewhere(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "first")
		h := take(t, st)
		s.locks.Do(t, "DEL", theLock)
		save(t, h, "second")
		wantData(t, s, "second")

		// The same data written again is another record: it has another stamp.
		stale := take(t, st)
		s.locks.Do(t, "DEL", theLock)
		save(t, take(t, s.process(t)), "second")
		wantError(t, "Save", stale.Save(t.Context(), []byte("stale")), ErrLost)
		wantData(t, s, "second")
	})
}

// Two hold the session at once and write at the same time: one of them wins.
func TestOneOfTwoHoldersWins(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		a, b := s.process(t), s.process(t)
		create(t, a, "first")
		for round := range 25 {
			first := take(t, a)
			s.locks.Do(t, "DEL", theLock)
			second := take(t, b)
			result := make(chan error)
			go func() { result <- first.Save(t.Context(), []byte("a")) }()
			err, other := second.Save(t.Context(), []byte("b")), <-result
			winner := "b"
			if err != nil {
				err, other, winner = other, err, "a"
			}
			if err != nil || !errors.Is(other, ErrLost) {
				t.Errorf("round %d: Save of one %v, of the other %v", round, err, other)
			}
			wantData(t, s, winner)
			wantFree(t, s)
		}
	})
}

// If Redis loses everything, nobody brings an old session back.
func TestNothingIsWrittenAfterFlush(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		ctx := t.Context()
		st := s.process(t)
		for what, write := range map[string]func(h *Hold) error{
			"Save":    func(h *Hold) error { return h.Save(ctx, []byte("stale")) },
			"Destroy": func(h *Hold) error { return h.Destroy(ctx) },
			"Renew":   func(h *Hold) error { return h.Renew(ctx, newID, []byte("stale")) },
		} {
			create(t, st, "first")
			h := take(t, st)
			s.Do(t, "FLUSHALL")
			wantError(t, what, write(h), ErrLost)
			eventually(t, what+" leaves nothing", func() bool { return len(append(s.Keys(t), s.locks.Keys(t)...)) == 0 })
		}
	})
}

// A hold that is used again after it was given back changes nothing, and says so.
func TestGivenBackTwiceElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "0")
		h := take(t, st)
		save(t, h, "1")
		wantError(t, "Save", h.Save(t.Context(), []byte("again")), ErrLost)
		h = take(t, st)
		h.Release(t.Context())
		wantError(t, "Save after Release", h.Save(t.Context(), []byte("late")), ErrLost)
		wantError(t, "Destroy after Release", h.Destroy(t.Context()), ErrLost)
		wantData(t, s, "1")
		wantFree(t, s)
	})
}
