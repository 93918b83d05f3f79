package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker"
)

// A tenure may be longer than a lease. Nobody loses the lock for that, though each
// hold is too short to be extended: Redis is slower to answer.
func TestTenureLongerThanItsLease(t *testing.T) {
	for name, tt := range map[string]struct {
		lease   time.Duration
		terms   Terms
		percent int // of the requests that may cost an exchange of their own
	}{
		"short lease": {600 * time.Millisecond, Terms{}, 5},
		"short holds": {patient.Lease, Terms{MaxHold: 600 * time.Millisecond}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			o, terms := patient, tt.terms
			o.Lease, terms.LockWait = tt.lease, patient.Lease
			eachDesk(t, o, func(t *testing.T, d *desk) {
				var all sync.WaitGroup
				var mu sync.Mutex
				requests := 0
				until := time.Now().Add(2 * time.Second)
				d.proxy.Inject(func(redistest.Command) redistest.Fault {
					time.Sleep(2 * time.Millisecond)
					return redistest.Pass
				})
				for range 32 {
					all.Go(func() {
						for time.Now().Before(until) {
							h, err := d.st.Take(t.Context(), theID, terms)
							if err != nil {
								t.Error(err)
								return
							}
							time.Sleep(500 * time.Microsecond) // the work
							if err := h.Save(t.Context(), fmt.Append(nil, number(t, h.Record)+1)); err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							requests++
							mu.Unlock()
						}
					})
				}
				all.Wait()
				d.wantQuiet(t, fmt.Sprint(requests))
				others := d.others()
				if others > requests*tt.percent/100 {
					t.Errorf("%d requests cost %d exchanges that neither take nor commit", requests, others)
				}
			})
		})
	}
}

// A hold that is handed over is extended like any other, and its commits do not make
// the lock end sooner than it relies on: not even if whoever took the lock may hold
// it for a moment only.
func TestLockLastsAsLongAsItsHolder(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		short := Terms{MaxHold: 400 * time.Millisecond}
		first, err := d.st.Take(t.Context(), theID, short)
		if err != nil {
			t.Fatal(err)
		}
		waiting := guests(t, d.st, 2, Terms{})
		save(t, first, "1")
		second := waiting[0].holds(t, "1")
		eventually(t, "the lease is extended", func() bool {
			return expiry(t, d.Server, theLock) > short.MaxHold
		})
		save(t, second, "2")
		last := waiting[1].holds(t, "2")
		left := expiry(t, d.Server, theLock) + 10*time.Millisecond // Redis cuts it to whole ms
		if left < last.lease.Validity() {
			t.Errorf("the lock ends in %v, its holder relies on %v", left, last.lease.Validity())
		}
		save(t, last, "3")
		d.wantQuiet(t, "3")
	})
}

// An extension that had to wait for a commit may find that the session has gone to the next
// request, which may hold it for longer than that extension asks for.
func TestExtensionAfterItsHold(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{})
		late := first.lease.Data()
		letGo := d.holdBack(t)
		one := saving(t, first, "1")
		second := waiting[0].holds(t, "1")
		extended := begin(func() error { return late.Extend(t.Context(), theLock, first.lease.Token(), time.Second) })
		letGo()
		if err := one.wait(); err != nil {
			t.Error(err)
		}
		wantError(t, "the extension", extended.wait(), locker.ErrExpired)
		wantExpiry(t, d.Server, theLock, patient.Lease)
		save(t, second, "2")
		d.wantQuiet(t, "2")
	})
}

// MaxHold is the end of each hold. Those who ended before are answered rightly, and
// the next one takes the lock anew.
func TestJoinedHoldTooLong(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		brief := Terms{MaxHold: time.Second}
		first, err := d.st.Take(t.Context(), theID, brief)
		if err != nil {
			t.Fatal(err)
		}
		waiting := guests(t, d.st, 1, brief)
		one := saving(t, first, "1")
		slow := waiting[0].holds(t, "1")
		if err := one.wait(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		slow.OnLost(cancel)
		next := make(chan *Hold, 1)
		go func() { next <- take(t, d.st) }()
		<-ctx.Done()
		wantError(t, "the context", context.Cause(ctx), ErrLost)
		slow.Release(t.Context()) // as its handler ends with its context
		h := <-next
		if string(h.Record.Data) != "1" {
			t.Errorf("the next one read %q", h.Record.Data)
		}
		save(t, h, "2")
		d.wantQuiet(t, "2")
	})
}

// In a long tenure the idle time-out is put off with each commit, changed or not.
func TestIdleTimeoutInTenure(t *testing.T) {
	const idle = time.Hour
	terms := Terms{TTL: idle, Lifetime: 10 * idle}
	for name, end := range map[string]func(ctx context.Context, h *Hold) error{
		"Save":  func(ctx context.Context, h *Hold) error { return h.Save(ctx, h.Record.Data) },
		"Touch": func(ctx context.Context, h *Hold) error { return h.Touch(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			eachDesk(t, patient, func(t *testing.T, d *desk) {
				first := take(t, d.st)
				waiting := guests(t, d.st, 2, terms)
				if err := first.Touch(t.Context()); err != nil {
					t.Error(err)
				}
				h := waiting[0].holds(t, "0")
				d.Do(t, "PEXPIRE", theRecord, 60_000)
				if err := end(t.Context(), h); err != nil {
					t.Error(err)
				}
				waiting[1].holds(t, "0").Release(t.Context())
				wantExpiry(t, d.Server, theRecord, idle)
			})
		})
	}
}

// A client may go away in the very moment in which its request is handed the session.
// Then it passes on at once, with what is stored.
func TestWaiterGoesAsItIsHandedTheSession(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		n := 0
		for range 150 {
			first := take(t, d.st)
			ctx, cancel := context.WithCancel(t.Context())
			gone := begin(func() error {
				h, err := d.st.Take(ctx, theID, Terms{LockWait: patient.Lease})
				if err == nil {
					h.Release(ctx)
				}
				return err
			})
			waitForLine(t, d.st, 1)
			next := begin(func() error {
				h, err := d.st.Take(t.Context(), theID, Terms{LockWait: patient.Lease})
				if err != nil {
					return err
				}
				return h.Save(t.Context(), fmt.Append(nil, number(t, h.Record)+1))
			})
			one := saving(t, first, fmt.Sprint(n+1))
			cancel()
			if err := one.wait(); err != nil {
				t.Error(err)
			}
			if err := next.wait(); err != nil {
				t.Error(err)
			}
			_ = gone.wait() // whether it came before it went, nobody knows
			n += 2
			d.wantQuiet(t, fmt.Sprint(n))
		}
	})
}
