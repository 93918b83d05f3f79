package records

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// While the first commit is under way, all waiters have their turn. Each builds on the version of the hold before
// it. They read nothing from Redis, and share the second commit.
func TestGroupCommit(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		const crowd = 20
		one, waiting, letGo := d.line(t, crowd)
		endings := []*ending{one}
		for i, g := range waiting {
			h := g.holds(t, fmt.Sprint(i+1))
			endings = append(endings, saving(t, h, fmt.Sprint(i+2)))
		}
		synctest.Wait() // no waiter is left, so the last hold waits for the first commit
		letGo()
		for _, e := range endings {
			wantError(t, "Save", e.wait(), nil)
		}
		d.wantQuiet(t, fmt.Sprint(crowd+1))
		takes, others := d.takes()
		if commits := d.count(commitScript); takes != 1 || others != 0 || commits > 2 {
			t.Errorf("%d requests cost %d takes, %d commits and %d other exchanges", crowd+1, takes, commits, others)
		}
	})
}

// The next request begins while the commit before it is under way. No end of a hold returns before its own write
// is stored.
func TestNobodyIsAnsweredBeforeTheCommit(t *testing.T) {
	for name, end := range ends {
		if name == "Release" {
			continue // Release reports nothing
		}
		t.Run(name, atDesk(patient, func(t *testing.T, d *desk) {
			one, waiting, letGo := d.line(t, 2)
			h := waiting[0].holds(t, "1")
			two := begin(func() error { return end(t.Context(), h) })
			if name == "Save" || name == "Touch" { // the session is passed on at once
				<-waiting[1].came
			}
			wantData(t, d.Server, "0") // what others see
			one.wantPending(t)
			two.wantPending(t)
			letGo()
			wantError(t, "both", errors.Join(one.wait(), two.wait()), nil)
			<-waiting[1].came
			if last := waiting[1].hold; last != nil {
				last.Release(t.Context())
			} else {
				wantError(t, "who waited", waiting[1].err, ErrGone)
			}
		}))
	}
}

// A hold that is released, or whose record is too large, passes nothing on to the next hold, and does not harm
// earlier holds.
func TestReleaseLeavesNoTrace(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(ctx context.Context, h *Hold) error
		want error
	}{
		"panic": {func(ctx context.Context, h *Hold) error { h.Release(ctx); return nil }, nil},
		"too large": {func(ctx context.Context, h *Hold) error {
			return h.Save(ctx, []byte(strings.Repeat("x", DefaultMaxBytes)))
		}, ErrTooLarge},
		"renewed to a known ID": {func(ctx context.Context, h *Hold) error { return h.Renew(ctx, newID, []byte("lost")) }, ErrCorrupt},
	} {
		t.Run(name, atDesk(patient, func(t *testing.T, d *desk) {
			d.Do(t, "SET", newRecord, "another's")
			one, waiting, letGo := d.line(t, 2)
			h := waiting[0].holds(t, "1")
			two := begin(func() error { return tt.end(t.Context(), h) })
			letGo() // what end sends comes behind the commit, on the same connection
			save(t, waiting[1].holds(t, "1"), "2")
			wantError(t, "Save", one.wait(), nil)
			wantError(t, name, two.wait(), tt.want)
			d.wantQuiet(t, "2")
		}))
	}
}

// In Redis, the lock names the present holder, whichever request made the commit.
func TestLockNamesThePresentHolder(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := takeBy(t, d.st, Terms{Label: "first"})
		for i := range 5 {
			label := fmt.Sprint("guest-", i)
			waiting := guests(t, d.st, 1, Terms{Label: label})
			save(t, first, fmt.Sprint(i+1))
			first = waiting[0].holds(t, fmt.Sprint(i+1))
			if lock, _ := d.Get(t, theLock); lock != tokenOf(first) || !strings.HasSuffix(lock, " "+label) {
				t.Errorf("the lock is %q, the holder %s with the token %s", lock, label, tokenOf(first))
			}
			_, _, err := process(t, d.Server).Take(t.Context(), theID, Terms{LockWait: time.Millisecond})
			if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), label) {
				t.Errorf("a waiter got the error %v, want one that names %s", err, label)
			}
		}
		first.Release(t.Context())
	})
}

// The lock does not name a request that left while the commit gave the lock to it.
func TestLockDoesNotNameWhoHasLeft(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		d.st.maxUnheard = 0 // so that the next hold begins only after the commit
		first := takeBy(t, d.st, Terms{Label: "first"})
		ctx, leave := context.WithCancel(t.Context())
		left := begin(func() error {
			_, _, err := d.st.Take(ctx, theID, Terms{Label: "left"})
			return err
		})
		synctest.Wait()
		waiting := guests(t, d.st, 1, Terms{Label: "stays"})
		letGo := d.holdBack(t)
		one := saving(t, first, "1")
		synctest.Wait()
		leave()
		wantError(t, "Take of the one that has left", left.wait(), context.Canceled)
		letGo()
		wantError(t, "Save", one.wait(), nil)
		h := waiting[0].holds(t, "1")
		if lock, _ := d.Get(t, theLock); lock != tokenOf(h) || !strings.HasSuffix(lock, " stays") {
			t.Errorf("the lock is %q, the holder has the token %s", lock, tokenOf(h))
		}
		save(t, h, "2")
		d.wantQuiet(t, "2")
	})
}

// P6: two processes with many waiting requests each take turns. Neither serves many in a row while the other
// waits.
func TestProcessesTakeTurns(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		const crowd = 250
		terms := Terms{LockWait: patient.Lease, MaxWaiters: crowd}
		last, row, longest := 0, 0, 0
		var served [2]int
		var all sync.WaitGroup
		gate := take(t, process(t, d.Server))
		for name, st := range []*Engine{d.st, process(t, d.Server)} {
			for range crowd {
				all.Go(func() {
					h, _, err := st.Take(t.Context(), theID, terms)
					if err != nil {
						t.Error(err)
						return
					}
					if name != last { // nobody else has the session
						last, row = name, 0
					}
					served[name]++
					if row++; served[1-name] < crowd { // otherwise the other process no longer competes
						longest = max(longest, row)
					}
					n := number(t, h.Record) + 1
					lapse(200 * time.Microsecond) // the work
					must(t, h.Save(t.Context(), fmt.Append(nil, n)))
				})
			}
		}
		synctest.Wait() // both are in the queue
		gate.Release(t.Context())
		all.Wait()
		wantData(t, d.Server, fmt.Sprint(2*crowd))
		if longest > 50 {
			t.Errorf("one process had %d turns in a row", longest)
		}
	})
}
