package store

import (
	"fmt"
	"testing"
	"time"
)

// A process that has not heard from Redis for a while does not go on before it has:
// others may have begun to wait.
func TestWhoHasNotHeardAsksFirst(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		d.st.alone = 0
		first := take(t, d.st)
		waiting := guests(t, d.st, 1, Terms{})
		letGo := d.holdBack(t)
		before := d.count(commitScript)
		one := saving(t, first, "1")
		d.sent(t, commitScript, before+1)
		select {
		case <-waiting[0].came:
			t.Error("the next one did not wait for the commit")
		default:
		}
		letGo()
		if err := one.wait(); err != nil {
			t.Error(err)
		}
		save(t, waiting[0].holds(t, "1"), "2")
		d.wantQuiet(t, "2")
	})
}

// A commit that takes long does not take ever more requests with it if it fails.
func TestNoFurtherAheadThanAllowed(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		first := take(t, d.st)
		waiting := guests(t, d.st, maxAhead+1, Terms{MaxWaiters: 2 * maxAhead})
		letGo := d.holdBack(t)
		all := []*ending{saving(t, first, "0")}
		for i, g := range waiting[:maxAhead-1] {
			all = append(all, saving(t, g.holds(t, fmt.Sprint(i)), fmt.Sprint(i+1)))
		}
		last := waiting[maxAhead-1]
		eventually(t, "all of them have ended", func() bool {
			made := first.fence.(*tenure)
			made.mu.Lock()
			defer made.mu.Unlock()
			return made.newest == maxAhead
		})
		select {
		case <-last.came:
			t.Errorf("%d versions are on their way, and one more begins", maxAhead)
		default:
		}
		letGo()
		for i, g := range waiting[maxAhead-1:] {
			save(t, g.holds(t, fmt.Sprint(maxAhead-1+i)), fmt.Sprint(maxAhead+i))
		}
		for _, e := range all {
			if err := e.wait(); err != nil {
				t.Error(err)
			}
		}
		d.wantQuiet(t, fmt.Sprint(maxAhead+1))
	})
}

// The commit that ends a turn stores all that others wait for: none of them sends its own before.
func TestTheLastCommitIsForAll(t *testing.T) {
	eachDesk(t, patient, func(t *testing.T, d *desk) {
		d.st.alone = time.Hour
		first := take(t, d.st)
		const n = 10
		waiting := guests(t, d.st, n, Terms{})
		letGo := d.holdBack(t)
		before := d.count(commitScript)
		all := []*ending{saving(t, first, "0")}
		d.sent(t, commitScript, before+1)
		for i, g := range waiting {
			all = append(all, saving(t, g.holds(t, fmt.Sprint(i)), fmt.Sprint(i+1)))
		}
		made := first.fence.(*tenure)
		eventually(t, "the last one has ended", func() bool {
			made.mu.Lock()
			defer made.mu.Unlock()
			return made.newest == n+1
		})
		letGo()
		for _, e := range all {
			if err := e.wait(); err != nil {
				t.Error(err)
			}
		}
		if sent := d.count(commitScript) - before; sent != 2 {
			t.Errorf("%d commits, want 2", sent)
		}
		d.wantQuiet(t, fmt.Sprint(n))
	})
}
