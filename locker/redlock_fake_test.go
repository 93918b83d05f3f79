package locker

import (
	"cmp"
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// A node is a fake that is slow, or away, from any moment on.
type node struct {
	fake
	delay atomic.Int64 // how much later it does everything
	takes atomic.Int64 // how long a Take takes besides
	away  atomic.Bool  // it refuses everything
}

func (n *node) slow(d time.Duration) { n.delay.Store(int64(d)) }

// do tells who asked how it went, unless that takes longer than s: then nobody
// listens any more.
func (n *node) do(what func() error) error {
	if n.away.Load() {
		return errRefused
	}
	d := time.Duration(n.delay.Load())
	if d <= s {
		time.Sleep(d)
		return what()
	}
	time.AfterFunc(d, func() { what() })
	time.Sleep(s)
	return errNoReply
}

func (n *node) Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error) {
	answer := make(chan Attempt, 1)
	err := n.do(func() error {
		time.Sleep(time.Duration(n.takes.Load()))
		found, err := n.fake.Take(ctx, key, token, lease)
		answer <- found
		return err
	})
	if err != nil {
		return Attempt{}, err
	}
	return <-answer, nil
}

func (n *node) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return n.do(func() error { return n.fake.Extend(ctx, key, token, d) })
}

func (n *node) Release(ctx context.Context, key, token string, after time.Duration) error {
	return n.do(func() error { return n.fake.Release(ctx, key, token, after) })
}

// newNodes returns n nodes that work.
func newNodes(n int) (nodes []*node) {
	for range n {
		nodes = append(nodes, &node{})
	}
	return nodes
}

// redlockOn returns what one process has: a lock on the nodes.
func redlockOn(nodes []*node, o Options) *Redlock {
	o.Timeout = cmp.Or(o.Timeout, s)
	o.Backoff = cmp.Or(o.Backoff, Backoff{Min: s / 100, Max: s / 5})
	r := &Redlock{lock: newLock(nil, nil, o), timeout: o.Timeout}
	for _, n := range nodes {
		r.nodes = append(r.nodes, theirs{n})
	}
	return r
}

// holders counts the nodes on which somebody has the lock.
func holders(nodes []*node) int {
	n := 0
	for _, f := range nodes {
		if f.Holder("k") != "" {
			n++
		}
	}
	return n
}

func lockOn(t *testing.T, r *Redlock) *Lease {
	t.Helper()
	l, err := r.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// wantTook says how long something took since begin.
func wantTook(t *testing.T, what string, begin time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(begin); took != want {
		t.Errorf("%s took %v, want %v", what, took, want)
	}
}
