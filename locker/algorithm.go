package locker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// An Algorithm is what one kind of lock does on Redis: single tries, without
// waiting. [New] makes a [Locker] of it.
//
// A token names one holder of one lock, and is never used again. All methods are safe to repeat
// with the same arguments, since a reply may be lost after Redis did the work. Errors other than
// the named ones wrap [ErrUnavailable], or end the wait as they are. A panic is an ErrUnavailable that
// says where it was; one of Valid counts as 0. Times are whole milliseconds.
type Algorithm interface {
	// Take tries to make token, which may be that already, the holder of key for a lease.
	Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error)
	// Extend makes the lease of token end d from now. The error is [ErrExpired]
	// where nobody has the lock, [ErrLost] where another has.
	Extend(ctx context.Context, key, token string, d time.Duration) error
	// Release frees the lock if token holds it, or lets it run out after a delay
	// where that is not zero. Errors as with Extend.
	Release(ctx context.Context, key, token string, after time.Duration) error
	// Valid returns how much of a lease its holder may rely on, from before the
	// command was sent: all of it, or less where clocks may differ.
	Valid(lease time.Duration) time.Duration
}

// An Attempt is the outcome of one Take. The zero value means that another has the
// lock, and nothing is known about it.
type Attempt struct {
	// Taken: the token has the lock.
	Taken bool
	// Holder is the token that has the lock instead, if it left one.
	Holder string
	// Left is how long the holder's lease still lasts. 0: that is not known.
	Left time.Duration
	// Ambiguous: a reply was lost, so that something may be locked all the same.
	Ambiguous bool
}

// New returns a Locker of an algorithm of one's own, or of [SpinAlgorithm] or
// [TimestampAlgorithm] on any client; for Redlock see [NewRedlockOn]. What is wrong with o is the error of every Lock.
func New(a Algorithm, o Options) Locker {
	if own, ok := a.(ours); ok {
		return newLock(own.Algorithm, own.notifiers, o)
	}
	return newLock(theirs{a}, nil, o)
}

// A lock is a Locker on one algorithm.
type lock struct {
	locks     lease.Locks
	algorithm lease.Algorithm
	options   lease.Options
	err       error // what is wrong with the options
}

// newLock returns a lock whose processes queue if there are notifiers.
func newLock(a lease.Algorithm, n *lease.Notifiers, o Options) *lock {
	l := &lock{algorithm: a, options: o.engine()}
	l.locks.Notifiers = n
	if err := o.check(); err != nil {
		l.err = fmt.Errorf("locker: %w", err)
	}
	return l
}

func (l *lock) Lock(ctx context.Context, key string) (*Lease, error) {
	return l.lockBy(ctx, key, l.algorithm)
}

// lockBy is Lock by an algorithm that may be for this time only.
func (l *lock) lockBy(ctx context.Context, key string, a lease.Algorithm) (*Lease, error) {
	if l.err != nil {
		return nil, l.err
	}
	o := l.options
	if label, _ := ctx.Value(labelKey{}).(string); label != "" {
		o.Label = label
	}
	got := new(Lease)
	if err := l.locks.LockAs(&got.lease, ctx, key, a, o); err != nil {
		return nil, err
	}
	return got, nil
}

// theirs is an Algorithm as the engine sees it, which also calls it in goroutines of its own: there a
// panic would end the process.
type theirs struct{ Algorithm }

func (t theirs) Take(ctx context.Context, key, token, _ string, span time.Duration) (_ lease.Attempt, err error) {
	defer scripting.Recovered(&err)
	found, err := t.Algorithm.Take(ctx, key, token, span)
	return lease.Attempt{Taken: found.Taken, Holder: found.Holder, Left: found.Left, MaybeTaken: found.Ambiguous}, err
}

func (t theirs) Extend(ctx context.Context, key, token string, d time.Duration) (err error) {
	defer scripting.Recovered(&err)
	return t.Algorithm.Extend(ctx, key, token, d)
}

func (t theirs) Release(ctx context.Context, key, token string, after time.Duration) (err error) {
	defer scripting.Recovered(&err)
	return t.Algorithm.Release(ctx, key, token, after)
}

func (t theirs) Valid(lease time.Duration) time.Duration {
	defer func() { _ = recover() }()
	return t.Algorithm.Valid(lease)
}

// ours is an algorithm of the engine as users see it.
type ours struct {
	lease.Algorithm
	notifiers *lease.Notifiers
}

func (o ours) Take(ctx context.Context, key, token string, span time.Duration) (Attempt, error) {
	found, err := o.Algorithm.Take(ctx, key, token, "", span)
	return Attempt{Taken: found.Taken, Holder: found.Holder, Left: found.Left, Ambiguous: found.MaybeTaken}, err
}

// Valid returns lease: the engine's algorithms on one Redis are not cautious.
func (ours) Valid(lease time.Duration) time.Duration { return lease }

// runnerOn returns how the algorithms of this package reach the Redis of pool.
func runnerOn(pool *redis.Pool, timeout time.Duration) *scripting.Runner {
	timeout = cmp.Or(timeout, DefaultTimeout)
	return scripting.NewRunner(transport.NewRedigo(pool, timeout), timeout)
}
