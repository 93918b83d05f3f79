package locker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// All nodes are asked at once, so the slowest that is needed decides how long it
// takes. All are needed for the first time, to see that they are not the same;
// later, the fastest majority.
func TestRedlockAsksAllAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(5)
		r := redlockOn(nodes, Options{})
		for i, f := range nodes {
			f.slow(time.Duration(i+1) * s / 10)
		}
		begin := time.Now()
		l := lockOn(t, r)
		wantTook(t, "the first Lock", begin, s/2)

		for range 3 {
			begin = time.Now()
			mustExtend(t, l)
			wantTook(t, "Extend", begin, 3*s/10)
			time.Sleep(s)
			begin = time.Now()
			mustUnlock(t, l)
			wantTook(t, "Unlock", begin, 3*s/10)
			after(s, func() {
				if n := holders(nodes); n != 0 {
					t.Errorf("%d nodes were not told of Unlock", n)
				}
			})
			begin = time.Now()
			l = lockOn(t, r)
			wantTook(t, "Lock", begin, 3*s/10)
			after(s, func() {
				if n := holders(nodes); n != 5 {
					t.Errorf("%d of 5 nodes have the lock", n)
				}
			})
		}
	})
}

// A node that does not answer costs its time-out, and nothing once all nodes have
// been met.
func TestRedlockSilentNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		r := redlockOn(nodes, Options{Lease: time.Hour, MaxHold: time.Hour})
		nodes[1].slow(time.Hour)
		for range 2 {
			begin := time.Now()
			l := lockOn(t, r)
			wantTook(t, "Lock with a node never met", begin, s)
			mustUnlock(t, l)
		}
		time.Sleep(2 * time.Hour) // let it catch up
		nodes[1].slow(0)
		mustUnlock(t, lockOn(t, r))
		synctest.Wait() // Unlock returns when a majority has done it
		nodes[1].slow(time.Hour)
		begin := time.Now()
		for range 10 {
			l := lockOn(t, r)
			mustExtend(t, l)
			mustUnlock(t, l)
		}
		wantTook(t, "Lock, Extend and Unlock", begin, 0)
		time.Sleep(2 * time.Hour)
	})
}

// One node is one vote, also where there is but one.
func TestRedlockOnOneNode(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(1)
		r := redlockOn(nodes, Options{})
		l := lockOn(t, r)
		mustExtend(t, l)
		mustUnlock(t, l)
		if n := holders(nodes); n != 0 {
			t.Error("the lock is not free")
		}
	})
}

// The holder may rely on the lease, less what it took to get it, less a hundredth
// and 2 ms for the clocks.
func TestRedlockValidity(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newNodes(3)
		r := redlockOn(nodes, Options{Lease: 100 * s, MaxHold: 1000 * s})
		for _, f := range nodes {
			f.slow(s / 2)
		}
		l := lockOn(t, r)
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

// A majority that answers when the lease is as good as over is no use: the lock is
// given back instead of out.
func TestRedlockValidityUsedUp(t *testing.T) {
	const lease, drift = 10 * s, s/10 + 2*time.Millisecond
	for name, tt := range map[string]struct {
		took time.Duration
		want error
	}{
		"just in time": {lease - drift - 1, nil},
		"too late":     {lease - drift, ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				// NewRedlock permits no such Timeout; but a process may be stopped.
				nodes := newNodes(3)
				r := redlockOn(nodes, Options{Lease: lease, Timeout: time.Hour})
				for _, f := range nodes {
					f.take = func(_ context.Context, _ int, do func() (bool, error)) (bool, error) {
						defer time.Sleep(tt.took)
						return do()
					}
				}
				l, err := r.Lock(t.Context(), "k")
				if !errors.Is(err, tt.want) {
					t.Fatalf("error %v, want %v", err, tt.want)
				}
				if l != nil {
					if l.Validity() != 1 {
						t.Errorf("validity %v", l.Validity())
					}
					mustUnlock(t, l)
				}
				synctest.Wait()
				if n := holders(nodes); n != 0 {
					t.Errorf("%d nodes are still locked", n)
				}
			})
		})
	}
}
