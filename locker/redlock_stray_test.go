package locker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// losesFirst makes a node lose the first call of a method. It is done later, or never if later is 0.
func losesFirst(node *fake, lost string, later time.Duration) {
	node.instead = func(_ context.Context, method string, n int, do func() error) error {
		if method != lost || n > 1 {
			return do()
		}
		if later > 0 {
			time.AfterFunc(later, func() { do() })
		}
		return errNoReply
	}
}

// The release after a failed try hangs, and arrives when a later try has succeeded, with that node's vote. It
// must not undo the later try. The later try need not wait for it: whatever may be left is released again.
func TestRedlockReleaseComesTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[0].Put("k", "another", s)
		nodes[1].away.Store(true)
		losesFirst(nodes[2], "Release", 5*s)
		begin := time.Now()
		l := mustLock(t, redlockOn(nodes, Options{Lease: time.Minute}))
		if took := time.Since(begin); took < s || took > 2*s {
			t.Errorf("acquired after %v", took)
		}
		redistest.Elapse(6 * s)
		wantHolders(t, nodes, 2)
		mustUnlock(t, l)
		wantHolders(t, nodes, 0)
	})
}

// The take of a failed try is lost, and arrives at its node when a later try has succeeded without that node. Unlock
// releases it there, too. Otherwise the node would refuse everybody for a lease.
func TestRedlockTakeComesTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[0].Put("k", "another", s)
		nodes[2].instead = func(_ context.Context, method string, n int, do func() error) error {
			switch {
			case method != "Take":
				return do()
			case n == 1:
				time.AfterFunc(5*s, func() { do() })
				return errNoReply
			default:
				return errRefused
			}
		}
		l := mustLock(t, redlockOn(nodes, Options{Lease: time.Minute}))
		redistest.Elapse(6 * s)
		wantHolders(t, nodes, 3)
		mustUnlock(t, l)
		wantHolders(t, nodes, 0)
	})
}

// A node takes the lock long after it was asked. The release does not overtake the take; otherwise the lock would
// be left without a holder. The same holds for an Unlock after the other nodes were enough.
func TestRedlockReleaseFollowsTake(t *testing.T) {
	for name, others := range map[string]string{"a try that fails": "another", "Unlock": ""} {
		t.Run(name, bubble(func(t *testing.T) {
			nodes := newNodes(3)
			r := redlockOn(nodes, Options{Lease: time.Hour, Wait: s, Timeout: s / 10})
			mustUnlock(t, mustLock(t, r))
			wantHolders(t, nodes, 0)
			for _, n := range nodes[:2] {
				n.Put("k", others, time.Hour)
			}
			nodes[2].takes.Store(int64(9 * s / 10))
			if l, err := r.Lock(t.Context(), "k"); l != nil {
				mustUnlock(t, l)
			} else if !errors.Is(err, ErrTimeout) {
				t.Error(err)
			}
			redistest.Elapse(time.Minute)
			if nodes[2].Holder("k") != "" {
				t.Error("the lock was left without a holder")
			}
			redistest.Elapse(2 * time.Hour)
			last := ""
			for _, c := range nodes[2].Calls() {
				if c.Method == "Take" && last == "Take" {
					t.Errorf("a try came before the end of the one before it: %+v", nodes[2].Calls())
				}
				last = c.Method
			}
		}))
	}
}

// A lock that a caller's own try has left behind is no other holder's: the error does not name it, and the caller
// does not wait for the end of its lease.
func TestRedlockIsNotItsOwnHolder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(5)
		nodes[0].Put("k", "one", time.Hour)
		nodes[1].Put("k", "two", time.Hour)
		for i, n := range nodes[2:] {
			n.instead = func(_ context.Context, method string, n int, do func() error) error {
				switch {
				case n > 1:
					return do()
				case method == "Release":
					return errNoReply // not done
				}
				if err := do(); i > 0 {
					return err
				}
				return errNoReply
			}
		}
		begin := time.Now()
		l := mustLock(t, redlockOn(nodes, Options{Lease: time.Minute, Policy: LeaseEnd}))
		if took := time.Since(begin); took > s/5 {
			t.Errorf("acquired after %v", took)
		}
		mustUnlock(t, l)
	})
}

// A silent node gets one release at a time. Waiting for it once for each try that may have left something would
// be useless. A node that loses all replies to takes gets releases again for the tries whose leases have not
// ended, even if the wait lasts for days.
func TestRedlockDoesNotInsist(t *testing.T) {
	for name, tt := range map[string]struct {
		silence        time.Duration
		loses          map[string]bool
		tries, perTake int
	}{
		"silent":      {s, map[string]bool{"Take": true, "Release": true}, 5, 1},
		"loses takes": {0, map[string]bool{"Take": true}, 30, 20},
	} {
		t.Run(name, bubble(func(t *testing.T) {
			nodes := newNodes(3)
			nodes[0].Put("k", "another", time.Hour)
			nodes[1].Put("k", "another", time.Hour)
			nodes[2].instead = func(_ context.Context, method string, _ int, do func() error) error {
				if tt.loses[method] {
					spend(tt.silence)
					return errNoReply
				}
				return do()
			}
			o := Options{Wait: time.Duration(tt.tries) * 2 * s, Backoff: Backoff{Min: s, Max: s}}
			if _, err := redlockOn(nodes, o).Lock(t.Context(), "k"); !errors.Is(err, ErrTimeout) {
				t.Error(err)
			}
			redistest.Elapse(time.Hour)
			takes, releases := len(nodes[2].Made("Take")), len(nodes[2].Made("Release"))
			if takes < tt.tries || releases > tt.perTake*takes+12 { // including sweeps
				t.Errorf("%d tries, %d releases", takes, releases)
			}
		}))
	}
}
