package store

import (
	"context"
	"errors"
	"testing"
	"time"
)

// losses are what others may do to a session that is held, and what its holder then learns.
var losses = map[string]struct {
	lock bool // it concerns the lock, which only the script that has both finds out
	lose func(t *testing.T, s *site)
	why  string
}{
	"the lock is taken": {true, func(t *testing.T, s *site) {
		s.Do(t, "DEL", theLock)
		if _, err := s.process(t).Take(t.Context(), theID, Terms{Label: "POST /order"}); err != nil {
			t.Fatal(err)
		}
	}, " POST /order has it now"},
	"the lock is deleted": {true, func(t *testing.T, s *site) { s.Do(t, "DEL", theLock) }, "its key is gone: deleted, evicted"},
	"the record is written": {false, func(t *testing.T, s *site) {
		s.Do(t, "SET", theRecord, formatRecord("ABCDEFGHIJKLMNOP", time.Now(), []byte("2")))
	}, "another has changed the session"},
	"the session is ended": {false, func(t *testing.T, s *site) {
		s.Do(t, "SET", theRecord, formatTombstone("ABCDEFGHIJKLMNOP", time.Now()))
	}, "another has ended the session"},
	"the record is deleted": {false, func(t *testing.T, s *site) { s.Do(t, "DEL", theRecord) }, "the session's record is gone"},
	"the record is no more a string": {false, func(t *testing.T, s *site) {
		s.Do(t, "DEL", theRecord)
		s.Do(t, "LPUSH", theRecord, "x")
	}, "another has changed the session"},
}

// wantLoss checks that err is an ErrLost alone, and says why.
func wantLoss(t *testing.T, err error, why string) {
	t.Helper()
	wantError(t, "the error", err, ErrLost)
	if errors.Is(err, ErrUnavailable) {
		t.Errorf("%v: nothing was stored, for certain", err)
	}
	wantMessage(t, err, []string{why})
}

// A write that is refused says why, whatever the lock.
func TestARefusedWriteSaysWhy(t *testing.T) {
	t.Parallel()
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each := eachFence
			if loss.lock {
				each = besideRecord
			}
			each(t, func(t *testing.T, s *site) {
				st := s.process(t)
				create(t, st, "1")
				h := take(t, st)
				loss.lose(t, s)
				wantLoss(t, h.Save(t.Context(), []byte("3")), loss.why)
			})
		})
	}
}

// The context of a request that has lost its session says why, too: what the next renewal finds.
func TestTheCauseOfALostSessionSaysWhy(t *testing.T) {
	t.Parallel()
	for name, loss := range losses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			besideRecord(t, func(t *testing.T, s *site) {
				st := s.process(t)
				create(t, st, "1")
				h := take(t, st)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				h.OnLost(cancel)
				loss.lose(t, s)
				_ = h.lease.Extend(t.Context(), time.Minute) // as the timer does
				<-ctx.Done()
				wantLoss(t, context.Cause(ctx), loss.why)
				wantLoss(t, h.Save(t.Context(), []byte("3")), loss.why)
			})
		})
	}
}

// So does the end of MaxHold, which no exchange finds out.
func TestALossByMaxHoldSaysSo(t *testing.T) {
	t.Parallel()
	besideRecord(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "1")
		h, err := st.Take(t.Context(), theID, Terms{MaxHold: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		<-h.lease.Lost()
		wantLoss(t, h.Save(t.Context(), []byte("2")), "held for longer than MaxHold, which is 50ms")
	})
}

// What a hold has built on could not be stored: the next hold's context says that.
func TestALossByAFailedCommitSaysSo(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{})
		letGo := d.holdBack(t)
		ending := saving(t, first, "1")
		second := waiting[0].holds(t, "1")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		second.OnLost(cancel)
		d.Do(t, "DEL", theLock)
		letGo()
		wantLoss(t, ending.wait(), "its key is gone")
		<-ctx.Done()
		wantLoss(t, context.Cause(ctx), "its key is gone")
		wantLoss(t, second.Save(t.Context(), []byte("2")), "its key is gone")
	})
}

// A hold that is used twice says so, and not that somebody took it away.
func TestAHoldIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	eachFence(t, func(t *testing.T, s *site) {
		st := s.process(t)
		create(t, st, "1")
		h := take(t, st)
		save(t, h, "2")
		wantLoss(t, h.Save(t.Context(), []byte("3")), "it was given back before")
		wantData(t, s, "2")
	})
}
