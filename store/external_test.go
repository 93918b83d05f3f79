package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
)

// with returns the options of a process whose lock is another one, on a Redis of its own.
func with(t *testing.T, s *redistest.Server) Options {
	o := patient
	o.Locker = locker.NewSpin(s.Another(t).Pool(t, 8), locker.Options{Lease: o.Lease, Wait: time.Minute, Timeout: o.Timeout})
	return o
}

// While some processes lock one way and some another, the locks do not keep them apart, but nothing
// that was answered is lost: whoever writes second on what another has changed gets ErrLost.
func TestMixedLocksCountEveryAnsweredIncrement(t *testing.T) {
	inFakeTime(t, func(t *testing.T, s *redistest.Server) {
		create(t, process(t, s), "0")
		var mu sync.Mutex
		answered, lost := 0, 0
		var all sync.WaitGroup
		for _, st := range []*Store{process(t, s), New(s.Pool(t, 8), with(t, s))} {
			for range 3 {
				all.Go(func() {
					for range 20 {
						h, err := st.Take(t.Context(), theID, Terms{LockWait: time.Minute})
						if err != nil {
							t.Error(err)
							return
						}
						lapse(2 * time.Millisecond) // a handler, beside which the others' run
						err = h.Save(t.Context(), fmt.Append(nil, number(t, h.Record)+1))
						mu.Lock()
						switch {
						case err == nil:
							answered++
						case errors.Is(err, ErrLost):
							lost++
						default:
							t.Errorf("Save: %v", err)
						}
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		if lost == 0 {
			t.Error("they never met, so nothing was tested")
		}
		wantData(t, s, fmt.Sprint(answered))
	})
}
