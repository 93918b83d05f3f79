package locker

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/leasetest"
	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// These errors may come instead of a reply.
var (
	errNoReply = fmt.Errorf("%w: the reply was lost", ErrUnavailable)
	errRefused = fmt.Errorf("%w: %w: READONLY", ErrUnavailable, transport.ErrRefused)
)

// A fake is an Algorithm in memory. Its zero value is a Redis that works.
type fake struct {
	leasetest.Locks
	away  atomic.Bool  // all calls are refused
	delay atomic.Int64 // how much later each call is done
	takes atomic.Int64 // how much longer a Take takes

	// instead replaces a method, for its nth call, counted from 1. do does what the method normally does. If
	// instead returns an error, it may also call do later.
	instead func(ctx context.Context, method string, n int, do func() error) error
}

func (f *fake) slow(d time.Duration) { f.delay.Store(int64(d)) }

func (f *fake) Take(ctx context.Context, key, token string, d time.Duration) (Attempt, error) {
	var found Attempt
	err := f.call(ctx, "Take", key, token, d, func() error {
		found.Taken = f.Locks.Take(key, token, d)
		if !found.Taken {
			found.Holder, found.Left = f.Holder(key), f.Left(key)
		}
		return nil
	})
	if err != nil {
		return Attempt{}, err
	}
	return found, nil
}

func (f *fake) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return f.call(ctx, "Extend", key, token, d, func() error { return verdict(token, f.Change(key, token, d)) })
}

func (f *fake) Release(ctx context.Context, key, token string, after time.Duration) error {
	return f.call(ctx, "Release", key, token, after, func() error { return verdict(token, f.Change(key, token, after)) })
}

func (f *fake) Valid(lease time.Duration) time.Duration { return lease }

// call returns the outcome, unless that takes longer than s: then the caller no longer waits.
func (f *fake) call(ctx context.Context, method, key, token string, d time.Duration, do func() error) error {
	if f.away.Load() {
		return errRefused
	}
	work := func() error {
		n := f.Record(method, key, token, d)
		if f.instead == nil {
			return do()
		}
		return f.instead(ctx, method, n, do)
	}
	delay := time.Duration(f.delay.Load())
	if delay > s {
		time.AfterFunc(delay, func() { work() })
		spend(s)
		return errNoReply
	}
	if method == "Take" {
		delay += time.Duration(f.takes.Load())
	}
	spend(delay)
	return work()
}

// verdict is the outcome of an operation by token on a lock of holder.
func verdict(token, holder string) error {
	switch holder {
	case token:
		return nil
	case "":
		return ErrExpired
	default:
		return ErrLost
	}
}

// spend lets time pass in one of several goroutines.
func spend(d time.Duration) {
	if d > 0 { // with -race, Go 1.26 may crash if several in a bubble receive from a timer that is due
		<-time.After(d)
	}
}

// newNodes returns n working nodes.
func newNodes(n int) (nodes []*fake) {
	for range n {
		nodes = append(nodes, &fake{})
	}
	return nodes
}

// redlockOn returns the lock of one process on the nodes.
func redlockOn(nodes []*fake, o Options) *Redlock {
	o.Timeout = cmp.Or(o.Timeout, s)
	o.Backoff = cmp.Or(o.Backoff, Backoff{Min: s / 100, Max: s / 5})
	r := &Redlock{lock: newLock(nil, nil, o), timeout: o.Timeout}
	for _, n := range nodes {
		r.nodes = append(r.nodes, own{Algorithm: n})
	}
	return r
}

// wantHolders checks on how many nodes the lock is held, once all goroutines wait.
func wantHolders(t *testing.T, nodes []*fake, want int) {
	t.Helper()
	synctest.Wait()
	n := 0
	for _, f := range nodes {
		if f.Holder("k") != "" {
			n++
		}
	}
	if n != want {
		t.Errorf("%d nodes are locked, want %d", n, want)
	}
}

// forget makes nodes come back empty, as from a restart.
func forget(nodes ...*fake) {
	for _, n := range nodes {
		n.Put("k", "", 0)
	}
}

// inBubble runs f in fake time, in which a goroutine certainly "still waits". Then it waits until everything
// under way has ended.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer redistest.Elapse(4 * time.Hour)
		f(t)
	})
}

// bubble is a subtest in fake time.
func bubble(f func(t *testing.T)) func(*testing.T) {
	return func(t *testing.T) { inBubble(t, f) }
}

// Times of many seconds read well, and cost nothing in a bubble.
const s = time.Second

// mustLock acquires key "k", waiting until it is free.
func mustLock(t *testing.T, locks Locker) *Lease {
	t.Helper()
	l, err := locks.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustExtend(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
}

func mustUnlock(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// wantTook checks how much time has passed since begin.
func wantTook(t *testing.T, what string, begin time.Time, want time.Duration) {
	t.Helper()
	if took := time.Since(begin); took != want {
		t.Errorf("%s took %v, want %v", what, took, want)
	}
}

// isLost reports whether the holder was notified of a loss.
func isLost(l *Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}
