package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P3: a holder lost its lock, and another has written since and holds the session
// now. Whatever the stale one does, nothing changes.
func TestStaleHolderChangesNothing(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(ctx context.Context, h *Hold) error{
		"Save": writes["Save"], "Destroy": writes["Destroy"], "Renew": writes["Renew"],
		"Touch":   func(ctx context.Context, h *Hold) error { return h.Touch(ctx) },
		"Release": func(ctx context.Context, h *Hold) error { h.Release(ctx); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, s *redistest.Server) {
				create(t, process(t, s), "first")
				stale := take(t, process(t, s))
				s.Do(t, "DEL", theLock) // a failover, say
				rightful := process(t, s)
				save(t, take(t, rightful), "rightful")
				h := take(t, rightful)

				record, _ := s.Get(t, theRecord)
				lock, _ := s.Get(t, theLock)
				s.Do(t, "PEXPIRE", theRecord, 60_000)
				err := use(t.Context(), stale)
				if writes[name] == nil {
					wantError(t, name, err, nil) // nothing was to be written
				} else {
					wantError(t, name, err, ErrLost)
				}
				if got, _ := s.Get(t, theRecord); got != record {
					t.Errorf("the record was %s and is %s", record, got)
				}
				wantExpiry(t, s, theRecord, time.Minute)
				if got, _ := s.Get(t, theLock); got != lock {
					t.Errorf("the lock was %s and is %s", lock, got)
				}
				wantNoRenewal(t, s)
				save(t, h, "rightful again")
				wantData(t, s, "rightful again")
			})
		})
	}
}

// A process is cut off from Redis for longer than its lease. It learns that its
// lock is lost, when the lease ends, and cannot write when it is back. A logout that finds the old
// id ended, since the next holder has given the session another one, must not pass for done: the
// session goes on.
func TestHolderThatWasCutOff(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(t *testing.T, h *Hold) error{
		"and another writes": func(t *testing.T, h *Hold) error { return h.Save(t.Context(), []byte("rightful")) },
		"and another renews": func(t *testing.T, h *Hold) error { return h.Renew(t.Context(), newID, []byte("rightful")) },
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(t *testing.T, s *redistest.Server) {
				o := patient
				o.Lease = 3 * time.Second
				st, p := tapped(t, s, o)
				create(t, process(t, s), "first")
				stale := take(t, st)
				begun, lost := time.Now(), lossOf(t, stale)
				p.Inject(func(redistest.Command) redistest.Fault { return redistest.DropCommand })
				rightful := process(t, s)
				wantError(t, "the next one", next(t, take(t, rightful)), nil) // it has waited for the end of the lease
				<-lost.Done()
				wantError(t, "the holder's context", context.Cause(lost), ErrLost)
				if took := time.Since(begun); took > o.Lease+100*time.Millisecond {
					t.Errorf("the next one had the session after %v, the lease is %v", took, o.Lease)
				}

				p.Inject(nil)
				for _, id := range []string{theID, newID} {
					r, err := rightful.Load(t.Context(), id, Terms{})
					if moved := name == "and another renews"; (id == newID) == moved && (string(r.Data) != "rightful" || err != nil) {
						t.Errorf("%s has %q, %v", id, r.Data, err)
					}
				}
				if err := stale.Destroy(t.Context()); !errors.Is(err, ErrLost) || errors.Is(err, ErrGone) {
					t.Errorf("Destroy: %v, want %v", err, ErrLost)
				}
				wantFree(t, s)
			})
		})
	}
}

// P7: MaxHold is the end of any hold, however well the holder is. Who was told
// of it cannot save any more, whatever Redis says.
func TestHeldTooLong(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		const most = 200 * time.Millisecond
		st := process(t, s)
		create(t, st, "first")
		begun := time.Now()
		h := takeBy(t, st, Terms{MaxHold: most})
		next := take(t, st)
		if took := time.Since(begun); took < most || took > most+510*time.Millisecond {
			t.Errorf("the next one had it after %v, want %v", took, most)
		}
		save(t, next, "next")
		wantLoss(t, h.Save(t.Context(), []byte("stale")), "held for longer than MaxHold, which is 200ms")
		wantData(t, s, "next")

		h = takeBy(t, st, Terms{MaxHold: most})
		token, _ := s.Get(t, theLock)
		toldLost(t, h)
		s.Do(t, "SET", theLock, token, "PX", 60_000)
		wantError(t, "Save", h.Save(t.Context(), []byte("late")), ErrLost)
		wantData(t, s, "next")
		eventually(t, "the lock is free", func() bool { return !s.Exists(t, theLock) })
	})
}

// It is the token in the lock that permits to write, whether or not another has written yet, or will.
func TestTokenIsTheFence(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		create(t, st, "first")
		for name, lose := range map[string]func(){
			"deleted":     func() { s.Do(t, "DEL", theLock) },
			"overwritten": func() { s.Do(t, "SET", theLock, "ANOTHER", "PX", 60_000) },
			"empty":       func() { s.Do(t, "SET", theLock, "", "PX", 60_000) },
		} {
			for what, write := range writes {
				s.Do(t, "DEL", theLock)
				h := take(t, st)
				lose()
				before, _ := s.Get(t, theLock)
				wantError(t, what+", lock "+name, write(t.Context(), h), ErrLost)
				if after, _ := s.Get(t, theLock); after != before {
					t.Errorf("%s, lock %s: the lock was %q and is %q", what, name, before, after)
				}
				wantData(t, s, "first")
				wantNoRenewal(t, s)
			}
		}
	})
}
