package locker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
)

// All nodes are asked at once, so the slowest needed node decides how long it takes. The first Lock needs all
// nodes, to see that they are different. Later the fastest majority is enough.
func TestRedlockAsksAllAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(5)
		r := redlockOn(nodes, Options{})
		for i, f := range nodes {
			f.slow(time.Duration(i+1) * s / 10)
		}
		begin := time.Now()
		l := mustLock(t, r)
		wantTook(t, "the first Lock", begin, s/2)
		for range 3 {
			begin = time.Now()
			mustExtend(t, l)
			wantTook(t, "Extend", begin, 3*s/10)
			redistest.Elapse(s)
			begin = time.Now()
			mustUnlock(t, l)
			wantTook(t, "Unlock", begin, 3*s/10)
			redistest.Elapse(s)
			wantHolders(t, nodes, 0)
			begin = time.Now()
			l = mustLock(t, r)
			wantTook(t, "Lock", begin, 3*s/10)
			redistest.Elapse(s)
			wantHolders(t, nodes, 5)
		}
		mustUnlock(t, l)
	})
}

// A node that does not reply costs its timeout. It costs nothing once all nodes have replied.
func TestRedlockSilentNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		r := redlockOn(nodes, Options{Lease: time.Hour})
		nodes[1].slow(time.Hour)
		for range 2 {
			begin := time.Now()
			l := mustLock(t, r)
			wantTook(t, "Lock with a node never met", begin, s)
			mustUnlock(t, l)
		}
		redistest.Elapse(2 * time.Hour) // let the silent node catch up
		nodes[1].slow(0)
		mustUnlock(t, mustLock(t, r))
		wantHolders(t, nodes, 0) // Unlock has returned after the replies of a majority
		nodes[1].slow(time.Hour)
		begin := time.Now()
		for range 10 {
			l := mustLock(t, r)
			mustExtend(t, l)
			mustUnlock(t, l)
		}
		wantTook(t, "Lock, Extend and Unlock", begin, 0)
	})
}

// Half of the nodes or more do not reply. Lock knows that after a timeout, and the time to undo its try. Callers
// in line are told, too, instead of each finding out. If the nodes refuse, Lock knows at once.
func TestRedlockKnowsSoonThatThereAreTooFew(t *testing.T) {
	for name, silence := range map[string]time.Duration{"silent": time.Hour, "away": 0} {
		t.Run(name, bubble(func(t *testing.T) {
			nodes := newNodes(3)
			for _, n := range nodes[1:] {
				n.slow(silence)
				n.away.Store(silence == 0)
			}
			r := redlockOn(nodes, Options{Wait: time.Minute})
			begin := time.Now()
			for range 10 {
				go func() {
					_, err := r.Lock(t.Context(), "k")
					if took := time.Since(begin); !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrTimeout) || took > min(silence, s+s/4) {
						t.Errorf("after %v: %v", took, err)
					}
				}()
			}
			redistest.Elapse(3 * time.Hour)
			wantHolders(t, nodes, 0)
		}))
	}
}

// The holder may rely on the lease, minus the time that acquiring it took, minus a hundredth and 2 ms for the
// clocks.
func TestRedlockValidity(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		r := redlockOn(nodes, Options{Lease: 100 * s, MaxHold: 1000 * s})
		for _, f := range nodes {
			f.slow(s / 2)
		}
		l := mustLock(t, r)
		const drift = s + 2*time.Millisecond
		if got, want := l.Validity(), 100*s-drift-s/2; got != want {
			t.Errorf("validity %v, want %v", got, want)
		}
		if err := l.Extend(t.Context(), 200*s); err != nil {
			t.Error(err)
		}
		if got, want := l.Validity(), 200*s-2*s-2*time.Millisecond-s/2; got != want {
			t.Errorf("validity after Extend %v, want %v", got, want)
		}
		mustUnlock(t, l)
	})
}

// If a majority replies when the lease is nearly over, the lock is of no use: it is released, not returned.
func TestRedlockValidityUsedUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const lease, drift = 10 * s, s/10 + 2*time.Millisecond
		for took, want := range map[time.Duration]error{lease - drift - 1: nil, lease - drift: ErrUnavailable} {
			// NewRedlock permits no such Timeout, but a process may be stopped.
			nodes := newNodes(3)
			for _, f := range nodes {
				f.instead = func(_ context.Context, method string, _ int, do func() error) error {
					if method == "Take" {
						defer spend(took)
					}
					return do()
				}
			}
			l, err := redlockOn(nodes, Options{Lease: lease, Timeout: time.Hour}).Lock(t.Context(), "k")
			if !errors.Is(err, want) || l != nil && l.Validity() != 1 {
				t.Errorf("after %v: error %v, want %v", took, err, want)
			}
			if l != nil {
				mustUnlock(t, l)
			}
			wantHolders(t, nodes, 0)
		}
	})
}

// An extension lasts shorter than it was asked for, by the drift. Near MaxHold that must not cause a series of
// tiny extensions.
func TestRedlockWatchdogStopsAtMaxHold(t *testing.T) {
	for _, maxHold := range []time.Duration{9 * s, 9*s + 1, 12 * s, 15 * s, 20 * s, time.Minute, time.Minute + s/7} {
		t.Run(maxHold.String(), bubble(func(t *testing.T) {
			nodes := newNodes(3)
			begin := time.Now()
			l := mustLock(t, redlockOn(nodes, Options{Lease: 9 * s, MaxHold: maxHold}))
			<-l.Lost()
			const drift = 9*s/100 + 2*time.Millisecond
			if held := time.Since(begin); held > maxHold || held < maxHold-drift {
				t.Errorf("held for %v", held)
			}
			last := begin
			for _, c := range nodes[0].Made("Extend") {
				if wait := c.At.Sub(last); wait < 3*s-drift || wait > 3*s {
					t.Errorf("the lock was extended after %v, %v after the last time", c.At.Sub(begin), wait)
				}
				last = c.At
			}
			l.Unlock(t.Context())
		}))
	}
}

// Extend and Release reach a slow node, too, although no caller waits for its reply by then. Otherwise its vote
// would be lost, or block others.
func TestRedlockTellsTheSlow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		nodes[2].instead = func(ctx context.Context, method string, _ int, do func() error) error {
			if method != "Take" {
				spend(s / 2) // until the others have replied
			}
			if ctx.Err() != nil {
				return ctx.Err() // no connection was free in time
			}
			return do()
		}
		l := mustLock(t, redlockOn(nodes, Options{Lease: 9 * s}))
		redistest.Elapse(time.Minute / 2)
		wantHolders(t, nodes, 3)
		mustUnlock(t, l)
		redistest.Elapse(s)
		wantHolders(t, nodes, 0)
	})
}

// Extend ends with its context, and with the lease. It returns the outcome of the replies so far.
func TestRedlockExtendKeepsToItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		l := mustLock(t, redlockOn(nodes, Options{Lease: 9 * s, Timeout: 2 * s}))
		nodes[0].slow(s)
		nodes[1].slow(s)
		ctx, cancel := context.WithTimeout(t.Context(), s/2)
		defer cancel()
		begin := time.Now()
		if err := l.Extend(ctx, time.Minute); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Extend: %v", err)
		}
		wantTook(t, "Extend", begin, s/2)
		mustUnlock(t, l) // waits until the Extend is done on each node
	})
}
