package locker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/leasetest"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// What may come instead of an answer.
var (
	errNoReply = fmt.Errorf("%w: the reply was lost", ErrUnavailable)
	errRefused = fmt.Errorf("%w: %w: READONLY", ErrUnavailable, transport.ErrRefused)
)

// A fake is an Algorithm in memory. It lets a test put something else in the place of its
// methods. Its zero value is a Redis that works.
type fake struct {
	leasetest.Locks

	// Each is called in place of a method, for its nth call from 1 on. do is
	// what the method does otherwise; it may also be called later.
	take    func(ctx context.Context, n int, do func() (bool, error)) (bool, error)
	extend  func(ctx context.Context, n int, do func() error) error
	release func(ctx context.Context, n int, do func() error) error
}

func (f *fake) Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error) {
	n := f.Record("Take", key, token, lease)
	do := func() (bool, error) { return f.Locks.Take(key, token, lease), nil }
	taken, err := false, error(nil)
	if f.take != nil {
		taken, err = f.take(ctx, n, do)
	} else {
		taken, err = do()
	}
	if taken || err != nil {
		return Attempt{Taken: taken}, err
	}
	return Attempt{Holder: f.Holder(key), Left: f.Left(key)}, nil
}

func (f *fake) Extend(ctx context.Context, key, token string, d time.Duration) error {
	n := f.Record("Extend", key, token, d)
	do := func() error { return verdict(token, f.Change(key, token, d)) }
	if f.extend != nil {
		return f.extend(ctx, n, do)
	}
	return do()
}

func (f *fake) Release(ctx context.Context, key, token string, after time.Duration) error {
	n := f.Record("Release", key, token, after)
	do := func() error { return verdict(token, f.Change(key, token, after)) }
	if f.release != nil {
		return f.release(ctx, n, do)
	}
	return do()
}

func (f *fake) Valid(lease time.Duration) time.Duration { return lease }

// verdict is the outcome of what token wanted to do with a lock.
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

// inBubble runs f in virtual time. There synctest.Wait returns when everybody
// waits for something, so "still waits" is a fact.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// second-long times read well, and cost nothing in a bubble.
const s = time.Second

// wantIdle says that no caller of this process is left at key "k".
func wantIdle(t *testing.T, g *lease.Group) {
	t.Helper()
	l, err := g.Lock(t.Context(), "k", theirs{&fake{}}, lease.Options{Wait: NoWait})
	if err != nil {
		t.Fatalf("somebody is left: %v", err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// lockWith takes key, which is free or becomes so.
func lockWith(t *testing.T, locks Locker) *Lease {
	t.Helper()
	l, err := locks.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// after runs f once d has passed and everything that happens then has happened.
func after(d time.Duration, f func()) {
	time.Sleep(d)
	synctest.Wait()
	f()
}

// isLost tells whether the holder has been told.
func isLost(l *Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}
