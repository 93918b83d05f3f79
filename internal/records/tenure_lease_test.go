package records

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// A tenure may last longer than a lease, and longer than MaxHold. No hold loses the lock because of that, and
// short holds do not cost a round trip each.
func TestTenureLongerThanItsLease(t *testing.T) {
	for name, tt := range map[string]struct {
		lease, maxHold time.Duration
		others         int // the most round trips that neither take nor commit
	}{
		"short lease":      {600 * time.Millisecond, time.Minute, 20},
		"short holds":      {patient.Lease, 5 * time.Second, 5},
		"very short holds": {patient.Lease, 600 * time.Millisecond, 50},
	} {
		t.Run(name, func(t *testing.T) {
			o, terms := patient, Terms{MaxHold: tt.maxHold, LockWait: patient.Lease}
			o.Lease = tt.lease
			eachDesk(t, o, func(t *testing.T, d *desk) {
				st := openFar(t, d.proxy.Pool(t, 8), time.Millisecond, o)
				var all sync.WaitGroup
				requests, end := 0, time.Now().Add(2*time.Second)
				for range 32 {
					all.Go(func() {
						for time.Now().Before(end) {
							h, _, err := st.Take(t.Context(), theID, terms)
							if err != nil {
								t.Error(err)
								return
							}
							requests++ // nobody else has the session
							n := number(t, h.Record) + 1
							lapse(500 * time.Microsecond) // the work
							must(t, h.Save(t.Context(), fmt.Append(nil, n)))
						}
					})
				}
				all.Wait()
				d.wantQuiet(t, fmt.Sprint(requests))
				if _, others := d.takes(); others > tt.others {
					t.Errorf("%d requests cost %d exchanges that neither take nor commit", requests, others)
				}
			})
		})
	}
}

// An upload may hold a session for a minute, other requests only for a moment. A request that follows an upload
// in the same process is bound by its own MaxHold. After that it is told of the loss, others get the session, and
// it can no longer save.
func TestMaxHoldOfAJoinedHoldEndsIt(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		const maxHold = 300 * time.Millisecond
		upload := take(t, d.st)
		joining := guests(t, d.st, 1, Terms{MaxHold: maxHold})[0]
		save(t, upload, "upload")
		slow := joining.holds(t, "upload")
		elsewhere := guests(t, process(t, d.Server), 1, Terms{})[0]
		began := time.Now()
		toldLost(t, slow)
		other := elsewhere.holds(t, "upload")
		if took := time.Since(began); took > maxHold+20*time.Millisecond {
			t.Errorf("another process had the session after %v, MaxHold is %v", took, maxHold)
		}
		save(t, other, "other")
		wantError(t, "Save after ErrLost", slow.Save(t.Context(), []byte("slow")), ErrLost)
		d.wantQuiet(t, "other")
	})
}

// A hold that follows another is extended like any other. Even if the request that acquired the lock has a short
// MaxHold, no commit makes the lock end sooner than the present hold relies on.
func TestLockLastsAsLongAsItsHolder(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		short := Terms{MaxHold: 400 * time.Millisecond}
		first := takeBy(t, d.st, short)
		waiting := guests(t, d.st, 2, Terms{})
		save(t, first, "1")
		second := waiting[0].holds(t, "1")
		lapse(2 * short.MaxHold)
		save(t, second, "2")
		last := waiting[1].holds(t, "2")
		if left := expiry(t, d.Server, theLock); left < validity(last).Truncate(time.Millisecond) {
			t.Errorf("the lock ends in %v, its holder relies on %v", left, validity(last))
		}
		save(t, last, "3")
		d.wantQuiet(t, "3")
	})
}

// A hold that begins after a commit is renewed like any other, even if the renewal was due while the tenure was
// vacant.
func TestAHoldThatWasGrantedIsRenewed(t *testing.T) {
	o := patient
	o.Lease = 600 * time.Millisecond
	eachDesk(t, o, func(t *testing.T, d *desk) {
		d.st.maxUnheard = 0 // so that the next hold begins only after the commit
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{})
		lapse(o.Lease * 5 / 6)
		letGo := d.holdBack(t)
		one := saving(t, first, "1")
		lapse(o.Lease / 3)
		letGo()
		wantError(t, "Save", one.wait(), nil)
		granted := waiting[0].holds(t, "1")
		if takes, _ := d.takes(); takes != 1 {
			t.Errorf("%d takes, want one: the commit gives the lock to the next request", takes)
		}
		lapse(3 * o.Lease)
		save(t, granted, "2")
		d.wantQuiet(t, "2")
	})
}

// A hold that begins while a commit is under way is renewed like any other: if Redis replies to the commit when the
// renewal was due, and if it replies at once, so that the alarm of the hold before rings too soon.
func TestAHoldThatBeginsDuringACommitIsRenewed(t *testing.T) {
	o := patient
	o.Lease = 600 * time.Millisecond
	for name, tt := range map[string]struct{ before, takes time.Duration }{"slow": {0, o.Lease * 5 / 6}, "fast": {o.Lease / 6, 0}} {
		t.Run(name, atDesk(o, func(t *testing.T, d *desk) {
			first := take(t, d.st)
			waiting := guests(t, d.st, 1, Terms{})
			lapse(tt.before)
			letGo := d.holdBack(t)
			one := saving(t, first, "1")
			second := waiting[0].holds(t, "1")
			lapse(tt.takes)
			letGo()
			wantError(t, "Save", one.wait(), nil)
			lapse(3 * o.Lease)
			save(t, second, "2")
			d.wantQuiet(t, "2")
		}))
	}
}

// P12: a session whose idle timeout is shorter than the lease does not run out while holds follow each other.
func TestAShortSessionOutlastsTheHoldThatFollows(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		short := Terms{TTL: 3 * time.Second}
		first := takeBy(t, d.st, short)
		waiting := guests(t, d.st, 1, short)
		save(t, first, "1")
		second := waiting[0].holds(t, "1")
		lapse(2 * short.TTL)
		save(t, second, "2")
		d.wantQuiet(t, "2")
	})
}
