package locker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The release of a try that failed hangs somewhere on its way, and arrives when a
// later try has won, with that node's yes. It must not undo that. Nor need the
// later try wait for it: what may be left is released again.
func TestRedlockReleaseComesTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[0].Put("k", "another", s)
		nodes[1].away.Store(true)
		nodes[2].release = func(_ context.Context, n int, do func() error) error {
			if n == 1 {
				time.AfterFunc(5*s, func() { do() })
				return errNoReply
			}
			return do()
		}
		begin := time.Now()
		l := lockOn(t, redlockOn(nodes, Options{Lease: time.Minute}))
		if took := time.Since(begin); took < s || took > 2*s {
			t.Errorf("won after %v", took)
		}
		after(6*s, func() {
			if nodes[0].Holder("k") == "" || nodes[2].Holder("k") == "" {
				t.Error("a node of the majority has forgotten the holder")
			}
		})
		mustUnlock(t, l)
		if n := holders(nodes); n != 0 {
			t.Errorf("%d nodes are still locked", n)
		}
	})
}

// The take of a try that failed arrives after its release. The next tries meet it,
// and remove it, rather than wait for their own lease to end.
func TestRedlockTakeComesTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[0].Put("k", "another", s)
		nodes[1].Put("k", "another", time.Hour)
		nodes[2].take = func(_ context.Context, n int, do func() (bool, error)) (bool, error) {
			if n == 1 {
				time.AfterFunc(s/2, func() { do() })
				return false, errNoReply
			}
			return do()
		}
		begin := time.Now()
		l := lockOn(t, redlockOn(nodes, Options{Lease: time.Minute}))
		if took := time.Since(begin); took > 2*s {
			t.Errorf("won after %v", took)
		}
		mustUnlock(t, l)
	})
}

// What a caller has left behind itself is no other holder: neither is it named as
// one, nor is the end of its lease worth a wait.
func TestRedlockIsNotItsOwnHolder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(5)
		nodes[0].Put("k", "one", time.Hour)
		nodes[1].Put("k", "two", time.Hour)
		for i, n := range nodes[2:] {
			n.take = func(_ context.Context, n int, do func() (bool, error)) (bool, error) {
				taken, err := do()
				if n == 1 && i == 0 {
					return false, errNoReply
				}
				return taken, err
			}
			n.release = func(_ context.Context, n int, do func() error) error {
				if n == 1 {
					return errNoReply // nor was it done
				}
				return do()
			}
		}
		begin := time.Now()
		l := lockOn(t, redlockOn(nodes, Options{Lease: time.Minute, Policy: LeaseEnd}))
		if took := time.Since(begin); took > s/5 {
			t.Errorf("won after %v", took)
		}
		mustUnlock(t, l)
	})
}

// A try that waits for its turn at a slow node is not made any more when the caller
// has gone.
func TestRedlockDropsTriesOfNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[0].Put("k", "another", time.Hour)
		nodes[1].Put("k", "another", time.Hour)
		nodes[2].takes.Store(int64(s / 2))
		ctx, cancel := context.WithTimeout(t.Context(), 3*s/10)
		defer cancel()
		r := redlockOn(nodes, Options{Timeout: s / 10})
		if _, err := r.Lock(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if tries, here := len(nodes[0].Made("Take")), len(nodes[2].Made("Take")); tries < 2 || here != 1 {
			t.Errorf("%d tries, %d of them made at the slow node", tries, here)
		}
	})
}

// A node that says nothing is told of one try at a time. It would be no use to wait
// for it once for each of the tries that may have left something there.
func TestRedlockDoesNotInsist(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[0].Put("k", "another", time.Hour)
		nodes[1].Put("k", "another", time.Hour)
		nodes[2].release = func(context.Context, int, func() error) error { time.Sleep(s); return errNoReply }
		nodes[2].take = func(context.Context, int, func() (bool, error)) (bool, error) {
			time.Sleep(s)
			return false, errNoReply
		}
		if _, err := redlockOn(nodes, Options{Wait: 9 * s}).Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		after(time.Hour, func() {
			takes, releases := len(nodes[2].Made("Take")), len(nodes[2].Made("Release"))
			if takes < 5 || releases > takes+12 { // with the sweeps
				t.Errorf("%d tries, %d releases", takes, releases)
			}
		})
	})
}

// Tries are remembered for as long as their tokens may last, even if the wait goes
// on for days.
func TestRedlockForgetsOldTries(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newRedlock(redlockOn(newNodes(3), Options{}))
		for i := range 1000 {
			old := try{number: i, end: time.Now().Add(10*s - 1)}
			a.stray(2, old)
			a.stray(2, old) // its take and its release were lost
			time.Sleep(s)
		}
		if n := len(a.strays[2]); n != 10 {
			t.Errorf("%d tries are remembered", n)
		}
	})
}
