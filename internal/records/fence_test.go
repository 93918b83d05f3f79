package records

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// P3: a holder that has lost its session to others cannot change it, whatever it does. Its write is refused, and
// the error says why.
func TestStaleHolderChangesNothing(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := process(t, s)
		for name, loss := range losses {
			for what, end := range ends {
				s.Do(t, "FLUSHALL")
				create(t, st, "first")
				h := take(t, st)
				token, _ := s.Get(t, theLock)
				loss.lose(t, s)
				record := stored(t, s)
				lock, _ := s.Get(t, theLock)
				switch err := end(t.Context(), h); {
				case writes[what] == nil:
					wantError(t, what, err, nil)
				case what == "Destroy" && name == "the session is ended":
					wantError(t, what, err, ErrGone)
				default:
					wantLoss(t, err, loss.why)
				}
				if got := stored(t, s); got != record {
					t.Errorf("%s, %s: the record was %s and is %s", name, what, record, got)
				}
				if got, _ := s.Get(t, theLock); got != lock && lock != token {
					t.Errorf("%s, %s: the lock was %s and is %s", name, what, lock, got)
				}
				wantNoRenewal(t, s)
			}
		}
	})
}

// A process is cut off from Redis for longer than its lease. It learns that its lock is lost when
// the lease ends. When it is back, its logout finds the old ID ended, because the next holder has
// given the session a new ID. That logout must fail: the session goes on.
func TestHolderThatWasCutOff(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		o := patient
		o.Lease = 3 * time.Second
		st, p := tapped(t, s, o)
		create(t, process(t, s), "first")
		stale := take(t, st)
		begun, lost := time.Now(), lossOf(t, stale)
		p.Inject(func(redistest.Command) redistest.Fault { return redistest.DropCommand })
		rightful := process(t, s)
		must(t, take(t, rightful).Renew(t.Context(), newID, []byte("rightful"))) // it has waited for the end of the lease
		<-lost.Done()
		wantError(t, "the holder's context", context.Cause(lost), ErrLost)
		if took := time.Since(begun); took > o.Lease+100*time.Millisecond {
			t.Errorf("the next holder had the session after %v, the lease is %v", took, o.Lease)
		}
		p.Inject(nil)
		if err := stale.Destroy(t.Context()); !errors.Is(err, ErrLost) || errors.Is(err, ErrGone) {
			t.Errorf("Destroy: %v, want %v", err, ErrLost)
		}
		if r, err := rightful.Load(t.Context(), newID, Terms{}); string(r.Data) != "rightful" || err != nil {
			t.Errorf("the new ID has %q, %v", r.Data, err)
		}
		wantFree(t, s)
	})
}

// P7: MaxHold ends any hold, even that of a live holder. A holder that was told of the loss can no longer save,
// whatever Redis replies.
func TestHeldTooLong(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		const most = 200 * time.Millisecond
		st := process(t, s)
		create(t, st, "first")
		begun := time.Now()
		h := takeBy(t, st, Terms{MaxHold: most})
		next := take(t, st)
		if took := time.Since(begun); took < most || took > most+510*time.Millisecond {
			t.Errorf("the next holder had the session after %v, want %v", took, most)
		}
		save(t, next, "next")
		wantLoss(t, h.Save(t.Context(), []byte("stale")), "held for longer than MaxHold, which is 200ms")
		wantData(t, s, "next")
	})
}
