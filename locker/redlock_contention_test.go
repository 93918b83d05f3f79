package locker

import (
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// Many processes that come at once take votes from each other. The pauses being
// random, each gets its turn, and never two at once.
func TestRedlockContenders(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(5)
		n := 0
		for range 5 {
			r := redlockOn(nodes, Options{Wait: time.Hour})
			go func() {
				l := mustLock(t, r)
				n++
				if n != 1 {
					t.Errorf("%d holders", n)
				}
				spend(s)
				n--
				mustUnlock(t, l)
			}()
		}
		redistest.Elapse(10 * s) // twice what it takes without any contention
		wantHolders(t, nodes, 0)
	})
}

// LeaseEnd goes by the lease of whoever has the lock.
func TestRedlockLeaseEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		l := mustLock(t, redlockOn(nodes, Options{Lease: 20 * s, MaxHold: 20 * s}))
		o := Options{Wait: 10 * s, Policy: LeaseEnd}
		begin := time.Now()
		_, err := redlockOn(nodes, o).Lock(t.Context(), "k")
		wantTook(t, "giving up", begin, 0)
		if _, named := errors.AsType[*HeldError](err); !named {
			t.Error(err)
		}
		<-l.Lost() // the lock is free a moment later, for the clocks' sake
		l.Unlock(t.Context())

		for _, n := range nodes[:2] {
			n.Put("k", "another", 5*s)
		}
		tries := len(nodes[2].Made("Take"))
		begin = time.Now()
		l = mustLock(t, redlockOn(nodes, o))
		if late := time.Since(begin) - 5*s; late < 0 || late > s/5 {
			t.Errorf("the lock was taken %v after it was free", late)
		}
		if n := len(nodes[2].Made("Take")) - tries; n != 2 {
			t.Errorf("%d tries", n)
		}
		mustUnlock(t, l)
	})
}

// Contenders have taken the votes from each other, so that nobody has the lock. Each
// of them will give its own back at once, so nobody's lease is worth a wait, nor a
// reason to give up.
func TestRedlockLeaseEndOfSplitVotes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[0].Put("k", "1.1:one", time.Minute)
		nodes[1].Put("k", "2.1:two", time.Minute)
		time.AfterFunc(s, func() { forget(nodes[0]) })
		begin := time.Now()
		l := mustLock(t, redlockOn(nodes, Options{Policy: LeaseEnd}))
		if late := time.Since(begin) - s; late < 0 || late > s/5 {
			t.Errorf("the lock was taken %v after it was free", late)
		}
		mustUnlock(t, l)
	})
}
