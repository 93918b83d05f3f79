package locker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// An Algorithm is what one kind of lock does on Redis: single tries, without waiting. [New] makes a [Locker] of
// it.
//
// A token identifies one holder of one lock, and is never used again. All methods must be safe to repeat with the
// same arguments, since a reply may be lost after Redis did the work. A method must return when its ctx has ended,
// which is how Options.Timeout bounds it. Apart from the documented errors, an error should wrap [ErrUnavailable];
// any other error ends the wait as it is. A panic counts as an ErrUnavailable whose text tells where it was; in Valid
// it counts as 0. Times are whole milliseconds.
type Algorithm interface {
	// Take tries to make token the holder of key for a lease. The token may be the holder already.
	Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error)
	// Extend makes the lease of token last for d from now at least. It does not shorten the lease, since it may come late:
	// after a longer Extend. The error is [ErrExpired] if no token has the lock, and [ErrLost] if another token has it.
	Extend(ctx context.Context, key, token string, d time.Duration) error
	// Release frees the lock if token holds it; if after is not zero, it lets the lock expire after that time.
	// The errors are those of Extend.
	Release(ctx context.Context, key, token string, after time.Duration) error
	// Valid returns how much of a lease its holder may rely on, counted from before the command was sent: all
	// of the lease, or less if clocks may differ.
	Valid(lease time.Duration) time.Duration
}

// An Attempt is the outcome of one Take. The zero value means that another token has the lock, and nothing is
// known about its holder.
type Attempt struct {
	// Taken: the token has the lock.
	Taken bool
	// Holder is the token that has the lock instead, if it is known.
	Holder string
	// Left is how long the holder's lease still lasts, or 0 if that is unknown.
	Left time.Duration
	// Ambiguous: a reply was lost, so the token may have the lock nevertheless.
	Ambiguous bool
}

// New returns a Locker of an algorithm: your own, or [SpinAlgorithm] or [TimestampAlgorithm] on any client. For
// Redlock see [NewRedlockOn].
func New(a Algorithm, o Options) Locker {
	switch known := a.(type) {
	case nil:
		return &lock{err: errors.New("locker: New: the Algorithm is nil")}
	case missing:
		return &lock{err: fmt.Errorf("locker: %s is nil", known.what)}
	case spin:
		if o.Timeout > 0 {
			known.Runner = known.Runner.Within(o.Timeout)
		}
		return newLock(known.Spin, known.notifiers, o)
	case timestamp:
		known.localClock = o.LocalClock
		if o.Timeout > 0 {
			known.runner = known.runner.Within(o.Timeout)
		}
		return newLock(own{Algorithm: known}, nil, o)
	}
	return newLock(own{a, o.Timeout}, nil, o)
}

// A lock is a Locker on one algorithm. It is nil in a zero Spin, Timestamp or Redlock.
type lock struct {
	locks     lease.Locks
	algorithm lease.Algorithm
	options   lease.Options
	err       error // what is wrong with the options
}

// newLock returns a lock. If n is not nil, the processes that wait for it queue.
func newLock(a lease.Algorithm, n *lease.Notifiers, o Options) *lock {
	l := &lock{algorithm: a, options: o.engine()}
	l.locks.Notifiers = n
	if err := o.check(); err != nil {
		l.err = fmt.Errorf("locker: %w", err)
	}
	return l
}

// missing is the algorithm of a constructor whose argument is nil. New knows it, so it is never called.
type missing struct {
	Algorithm
	what string
}

var errZero = errors.New("locker: a zero value is no lock: New, NewSpin, NewTimestamp and NewRedlock make locks")

func (l *lock) Lock(ctx context.Context, key string) (*Lease, error) {
	if l == nil {
		return nil, errZero
	}
	return l.lockBy(ctx, key, l.algorithm)
}

// lockBy is Lock with an algorithm that may be used only once.
func (l *lock) lockBy(ctx context.Context, key string, a lease.Algorithm) (*Lease, error) {
	if l.err != nil {
		return nil, l.err
	}
	o := l.options
	if label, _ := ctx.Value(labelKey{}).(string); label != "" {
		o.Label = label
	}
	got := new(Lease)
	if err := l.locks.LockAs(ctx, &got.lease, key, a, o); err != nil {
		return nil, err
	}
	return got, nil
}

// own is a user's Algorithm as the engine needs it. The engine also calls it in background goroutines, where a
// panic would end the process.
type own struct {
	Algorithm
	timeout time.Duration // of each call; 0: the Algorithm, or its client, bounds that
}

func (a own) Take(ctx context.Context, key, token, _ string, span time.Duration) (_ lease.Attempt, err error) {
	defer scripting.Recovered(&err)
	var found Attempt
	err = a.bound(ctx, func(ctx context.Context) (err error) {
		found, err = a.Algorithm.Take(ctx, key, token, span)
		return err
	})
	return lease.Attempt{Taken: found.Taken, Holder: found.Holder, Left: found.Left, MaybeTaken: found.Ambiguous}, err
}

func (a own) Extend(ctx context.Context, key, token string, d time.Duration) (err error) {
	defer scripting.Recovered(&err)
	return a.bound(ctx, func(ctx context.Context) error { return a.Algorithm.Extend(ctx, key, token, d) })
}

func (a own) Release(ctx context.Context, key, token string, after time.Duration) (err error) {
	defer scripting.Recovered(&err)
	return a.bound(ctx, func(ctx context.Context) error { return a.Algorithm.Release(ctx, key, token, after) })
}

// bound calls do with the time of a round trip. If do returns only the error of its context, that is an ErrUnavailable:
// what it has sent may still be done.
func (a own) bound(ctx context.Context, do func(context.Context) error) error {
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	err := do(ctx)
	if err != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

func (a own) Valid(lease time.Duration) time.Duration {
	defer func() { _ = recover() }()
	return a.Algorithm.Valid(lease)
}

// on returns l, or, if pool is nil, a lock with that error.
func on(pool *redis.Pool, l *lock) *lock {
	if pool == nil && l.err == nil {
		l.err = errors.New("locker: the pool is nil")
	}
	return l
}

// runnerOn returns a runner on the Redis of pool.
func runnerOn(pool *redis.Pool, timeout time.Duration) *scripting.Runner {
	timeout = cmp.Or(timeout, DefaultTimeout)
	return scripting.NewRunner(transport.NewRedigo(pool, timeout), timeout)
}
