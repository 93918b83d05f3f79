package records

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/fakeredis"
)

// failures are ways in which a commit under way can fail. Each function is called before the commit reaches
// Redis.
var failures = map[string]struct {
	fail func(t *testing.T, d *desk)
	want error
}{
	"no answer":     {func(t *testing.T, d *desk) { lapse(2 * patient.Timeout) }, ErrUnavailable},
	"lock deleted":  {func(t *testing.T, d *desk) { d.Do(t, "DEL", theLock) }, ErrLost},
	"lock taken":    {func(t *testing.T, d *desk) { d.Do(t, "SET", theLock, "ANOTHER", "PX", 500) }, ErrLost},
	"out of memory": {func(t *testing.T, d *desk) { d.Fake(func(r *fakeredis.Server) { r.Full = true }) }, ErrUnavailable},
	"read only":     {func(t *testing.T, d *desk) { d.Fake(func(r *fakeredis.Server) { r.Replica = true }) }, ErrUnavailable},
}

// When a commit fails, all holds whose versions are not stored fail with the same error, and so do the holds
// that build on them. The next request reads the record anew. It does not wait for the end of the lease.
func TestFailedCommit(t *testing.T) {
	for name, failure := range failures {
		t.Run(name, atDesk(patient, func(t *testing.T, d *desk) {
			one, waiting, letGo := d.line(t, 4)
			endings := []*ending{one, saving(t, waiting[0].holds(t, "1"), "2")}
			reader := waiting[1].holds(t, "2")
			endings = append(endings, begin(func() error { return reader.Touch(t.Context()) }))
			last := waiting[2].holds(t, "2")
			lost := lossOf(t, last)

			failure.fail(t, d)
			letGo()
			<-lost.Done()
			wantError(t, "the context of who holds the session", context.Cause(lost), ErrLost)
			d.Fake(func(r *fakeredis.Server) { r.Full, r.Replica = false, false })
			endings = append(endings, saving(t, last, "3"))
			for i, e := range endings {
				err := e.wait()
				wantError(t, "who ended", err, failure.want)
				if errors.Unwrap(err) != errors.Unwrap(endings[0].err) {
					t.Errorf("ending %d has another error: %v, want %v", i, err, endings[0].err)
				}
			}
			began := time.Now()
			next := waiting[3]
			if <-next.came; errors.Is(next.err, ErrUnavailable) { // Redis refused it, too
				next.hold, _, next.err = d.st.Take(t.Context(), theID, Terms{LockWait: patient.Lease})
			}
			next.holds(t, "0")
			if waited := time.Since(began); waited > time.Second {
				t.Errorf("the next request waited for %v", waited)
			}
			save(t, next.hold, "4")
			d.wantQuiet(t, "4")
		}))
	}
}

// A commit that ends the session, or gives it a new ID, fails likewise. A logout may show the write that it
// follows. So it fails with that write, even if another request ended the session before either was stored: no
// response may show what is not stored.
func TestFailedEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		end   end
		ended bool // by another request; otherwise the lock is deleted
	}{
		"Destroy": {destroys, false}, "Renew": {renews, false}, "Destroy of what another has ended": {destroys, true},
	} {
		t.Run(name, atDesk(patient, func(t *testing.T, d *desk) {
			one, waiting, letGo := d.line(t, 2)
			h := waiting[0].holds(t, "1")
			two := begin(func() error { return tt.end(t.Context(), h) })
			if tt.ended {
				must(t, process(t, d.Server).End(t.Context(), theID))
			} else {
				d.Do(t, "DEL", theLock)
			}
			letGo()
			wantError(t, "Save", one.wait(), ErrLost)
			wantError(t, name, two.wait(), ErrLost) // not ErrGone alone
			if tt.ended {
				wantGone(t, d.Server, d.st)
				return
			}
			waiting[1].holds(t, "0").Release(t.Context())
			d.wantQuiet(t, "0")
			wantNoRenewal(t, d.Server)
		}))
	}
}

// The lock is deleted while no round trip is under way. The holder cannot save, and the next request reads the
// record anew. A hold that begins before the loss is known fails, too, even if it only reads: another process may
// have written before that.
func TestLockVanishesBetweenCommits(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, 3, Terms{})
		save(t, first, "1")
		second := waiting[0].holds(t, "1")
		d.Do(t, "DEL", theLock)
		other := take(t, process(t, d.Server))
		save(t, other, "rightful")
		wantError(t, "Save", saving(t, second, "2").wait(), ErrLost)
		// One of the others may have begun before the loss was known. If it had not run yet, it enters the line
		// again, maybe behind the other.
		var all sync.WaitGroup
		for _, g := range waiting[1:] {
			all.Go(func() {
				<-g.came
				wantError(t, "Take", g.err, nil)
				switch data := string(g.hold.Record.Data); data {
				case "2":
					wantError(t, "Touch", g.hold.Touch(t.Context()), ErrLost)
				case "rightful", "3":
					wantError(t, "Save", g.hold.Save(t.Context(), []byte("3")), nil)
				default:
					t.Errorf("a guest found %q", data)
				}
			})
		}
		all.Wait()
		d.wantQuiet(t, "3")
	})
}
