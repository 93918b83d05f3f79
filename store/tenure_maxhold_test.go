package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// A hold that is handed over ends with its own MaxHold, also if whoever took the lock
// may hold it for longer.
func TestJoinedHoldHasItsOwnMaxHold(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{MaxHold: 300 * time.Millisecond})
		save(t, first, "1")
		slow := waiting[0].holds(t, "1")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		slow.OnLost(cancel)
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Second):
			t.Error("it may hold the session for longer than its MaxHold")
		}
		slow.Release(t.Context())
	})
}

// A MaxHold that is shorter than two thirds of the lease does not make each hold that
// is handed over cost an extension.
func TestShortMaxHoldCostsNoExtensions(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		terms := Terms{MaxHold: 5 * time.Second, LockWait: patient.Lease}
		d.proxy.Inject(func(redistest.Command) redistest.Fault {
			time.Sleep(2 * time.Millisecond)
			return redistest.Pass
		})
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				h, err := d.st.Take(t.Context(), theID, terms)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				if err := h.Save(t.Context(), fmt.Append(nil, number(t, h.Record)+1)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := d.others(); n > 5 {
			t.Errorf("100 requests cost %d exchanges that neither take nor commit", n)
		}
	})
}
