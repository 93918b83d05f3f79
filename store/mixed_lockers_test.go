package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/store"
	"github.com/gomodule/redigo/redis"
)

// While a new version with another Locker is rolled out, some processes lock one way
// and some another. The locks do not keep them apart then, but nothing that was answered
// is lost: whoever writes second on what another has changed gets ErrLost.

// spinning returns the store of a process with a Locker of its own that uses the very
// key that the default lock uses.
func spinning(t *testing.T, r *redistest.Server, maxHold time.Duration) *store.Store {
	t.Helper()
	o := patient
	o.Locker = locker.NewSpin(r.Pool(t, 8), locker.Options{
		Lease: o.Lease, MaxHold: maxHold, Wait: time.Minute, Timeout: o.Timeout,
	})
	return open(t, r, o)
}

// A handler runs beyond its MaxHold, and a process with the other lock takes the
// session. They save in either order, once alone and once with a line behind them.
func TestMixedLocksBeyondMaxHoldLoseNoAnsweredWrite(t *testing.T) {
	t.Parallel()
	const maxHold = 100 * time.Millisecond
	for _, slow := range []string{"default", "spin"} {
		for _, first := range []string{"the slow one", "the other"} {
			t.Run(fmt.Sprintf("%s is slow and %s saves first", slow, first), func(t *testing.T) {
				t.Parallel()
				redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
					plain, spin := open(t, r, patient), spinning(t, r, maxHold)
					create(t, plain, "0", store.Terms{})
					late, next, terms := plain, spin, store.Terms{MaxHold: maxHold}
					if slow == "spin" {
						late, next, terms = spin, plain, store.Terms{} // its Locker has the MaxHold
					}
					a := take(t, late, terms)
					toldLost(t, a)
					b := take(t, next, store.Terms{})
					if first == "the other" {
						a, b = b, a
					}
					answers := []error{
						a.Save(t.Context(), fmt.Append(nil, number(t, a.Record)+1)),
						b.Save(t.Context(), fmt.Append(nil, number(t, b.Record)+1)),
					}
					answered, lost := 0, 0
					for _, err := range answers {
						switch {
						case err == nil:
							answered++
						case errors.Is(err, store.ErrLost):
							lost++
						}
					}
					if answered != 1 || lost != 1 {
						t.Errorf("both wrote on the same record and were told %v; want one success and one ErrLost", answers)
					}
					wantData(t, plain, fmt.Sprint(answered))
				})
			})
		}
	}
}

// With the default lock and with Redlock, whose locks are elsewhere, increments run
// beside each other all the time.
func TestMixedLocksCountEveryAnsweredIncrement(t *testing.T) {
	t.Parallel()
	redistest.EachInRealTime(t, func(t *testing.T, r *redistest.Server) {
		nodes := make([]*redis.Pool, 3)
		for i := range nodes {
			nodes[i] = redistest.Embedded(t).Pool(t, 8)
		}
		o := patient
		o.Locker = locker.NewRedlock(nodes, locker.Options{Lease: time.Minute, Wait: time.Minute, Timeout: 5 * time.Second})
		stores := map[string]*store.Store{"default": open(t, r, patient), "redlock": open(t, r, o)}
		create(t, stores["default"], "0", store.Terms{})

		const workers = 3
		end := time.Now().Add(time.Second)
		var answered, lost atomic.Int64
		var all sync.WaitGroup
		for name, st := range stores {
			for range workers {
				all.Go(func() {
					for time.Now().Before(end) {
						h, err := st.Take(t.Context(), theID, store.Terms{LockWait: time.Minute})
						if err != nil {
							t.Errorf("%s: Take: %v", name, err)
							return
						}
						n := number(t, h.Record)
						time.Sleep(2 * time.Millisecond) // a handler, beside which the others' run
						switch err := h.Save(t.Context(), fmt.Append(nil, n+1)); {
						case err == nil:
							answered.Add(1)
						case errors.Is(err, store.ErrLost):
							lost.Add(1)
						default:
							t.Errorf("%s: Save: %v", name, err)
						}
					}
				})
			}
		}
		all.Wait()
		t.Logf("%d increments answered, %d refused with ErrLost", answered.Load(), lost.Load())
		if lost.Load() == 0 {
			t.Error("they never met, so nothing was tested")
		}
		record, err := stores["default"].Load(t.Context(), theID, store.Terms{})
		if err != nil {
			t.Fatal(err)
		}
		if n := int64(number(t, record)); n != answered.Load() {
			t.Errorf("%d increments were answered, and the counter says %d: %d are lost",
				answered.Load(), n, answered.Load()-n)
		}
	})
}
