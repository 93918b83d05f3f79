// Package locker is locks on Redis: one holder at a time in any number of
// processes, who learns at once when the lock is no longer theirs.
//
// # Design
//
// A lock is a key in Redis. What differs from one kind of lock to the next is
// an [Algorithm]: how to take, extend and release that key, one try each,
// nothing else. What they share is here once:
//
//   - line.go: callers of one process wait for one key in a queue, first come,
//     first served. Only the head of the queue talks to Redis, so a crowd costs
//     Redis one contender, and the waiters hold no connection.
//   - guard.go: the head's loop. Try, back off, try again, until the wait is
//     over or the context ends. What a try may have left behind is cleaned up.
//   - lease.go: a lock that was won, and the ways to give it back.
//   - watchdog.go: extends it while it is held, up to MaxHold. When it is lost,
//     the holder is told.
//   - client.go: Redis itself, as one method.
//
// # What is guaranteed, and what is not
//
// As long as Redis keeps its data, at most one token is in the lock key, and a
// lease is given out only while its token is. A lease's end is counted from
// before the command that took or extended it was sent, by the monotonic clock
// of this process, so a holder's idea of its lease never outlasts Redis's.
//
// A paused holder does not notice that its lease has run out until it runs
// again. So no lock of this kind makes a write safe by itself: what the lock
// guards has to compare the token, in the same step as the write. Package store
// does that.
//
// Redis may lose the key: a failover to a replica that did not have it yet, an
// eviction, a FLUSHALL. Then two callers may hold the lock until the first one's
// watchdog notices, at most a third of the lease later.
package locker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The errors of this package, to be matched with [errors.Is].
var (
	// ErrTimeout: the lock was not free within Options.Wait.
	ErrTimeout = errors.New("lock is still held by another")
	// ErrTooManyWaiters: Options.MaxWaiters callers of this process wait for
	// the key already.
	ErrTooManyWaiters = errors.New("too many wait for this lock already")
	// ErrLost: the lease ran out or its key vanished, and another may hold the
	// lock by now.
	ErrLost = errors.New("lock was lost")
	// ErrExpired: the lease ran out, but nobody has taken the lock since.
	ErrExpired = errors.New("lock expired, and nobody took it")
	// ErrUnavailable: Redis could not be reached, did not answer in time, or
	// refused the command.
	ErrUnavailable = errors.New("redis is unavailable")
)

// A Locker gives out leases on keys. Its methods may be called at any time by
// any number of goroutines.
//
// Lock returns a lease once the caller is the only holder of key, and the caller
// must give it back with Unlock. It waits as long as the Locker's options say
// and ctx allows; where it fails, nothing stays locked. The error wraps
// [ErrTimeout], [ErrTooManyWaiters], [ErrUnavailable] or the cause of ctx's end.
//
// The lease does not end with ctx. It is not re-entrant: a holder that locks
// the same key again waits for itself.
type Locker interface {
	Lock(ctx context.Context, key string) (*Lease, error)
}

// Options say how to lock. The zero value means the defaults.
type Options struct {
	// Lease is how long the lock outlives a holder that was killed. A living
	// one has it extended every third of it. Default 10 s, at least 1 ms.
	Lease time.Duration
	// Wait is the longest time to wait for the lock. An exchange that is under
	// way by then may take Timeout more. Default 10 s.
	Wait time.Duration
	// MaxHold is how long a lease is extended. Then it runs out, and the holder
	// is told by Lease.Lost. Default 1 min, or Lease where that is longer.
	MaxHold time.Duration
	// MaxWaiters is how many callers of this process may wait for one key; the
	// holder does not count. Default 128.
	MaxWaiters int
	// Backoff is the pause between two tries while another process holds the
	// lock. Default 1 ms, doubling up to 16 ms.
	Backoff Backoff
	// Timeout bounds each exchange with Redis, including the wait for a
	// connection. Default 2 s.
	Timeout time.Duration
}

// Defaults of [Options].
const (
	DefaultLease      = 10 * time.Second
	DefaultWait       = 10 * time.Second
	DefaultMaxHold    = time.Minute
	DefaultMaxWaiters = 128
	DefaultTimeout    = 2 * time.Second
)

// withDefaults returns o with its zero fields filled in, or the first rule that
// o breaks.
func (o Options) withDefaults() (Options, error) {
	if err := o.check(); err != nil {
		return o, fmt.Errorf("locker: %w", err)
	}
	o.Lease = orElse(o.Lease, DefaultLease)
	o.Wait = orElse(o.Wait, DefaultWait)
	o.MaxHold = orElse(o.MaxHold, max(DefaultMaxHold, o.Lease))
	o.MaxWaiters = orElse(o.MaxWaiters, DefaultMaxWaiters)
	o.Timeout = orElse(o.Timeout, DefaultTimeout)
	o.Backoff = orElse(o.Backoff, Backoff{Min: time.Millisecond, Max: 16 * time.Millisecond})
	return o, nil
}

func (o Options) check() error {
	switch {
	case o.Lease < 0, o.Lease > 0 && o.Lease < time.Millisecond:
		return fmt.Errorf("Options.Lease is %v: it must be at least 1ms, or 0 for the default", o.Lease)
	case o.Wait < 0:
		return fmt.Errorf("Options.Wait is %v: it must not be negative", o.Wait)
	case o.MaxHold < 0, o.MaxHold > 0 && o.MaxHold < time.Millisecond:
		return fmt.Errorf("Options.MaxHold is %v: it must be at least 1ms, or 0 for the default", o.MaxHold)
	case o.MaxWaiters < 0:
		return fmt.Errorf("Options.MaxWaiters is %d: it must not be negative", o.MaxWaiters)
	case o.Timeout < 0:
		return fmt.Errorf("Options.Timeout is %v: it must not be negative", o.Timeout)
	case o.Backoff.Min < 0, o.Backoff.Max < o.Backoff.Min:
		return fmt.Errorf("Options.Backoff is %v to %v: Min must not be negative, nor Max below Min", o.Backoff.Min, o.Backoff.Max)
	}
	return nil
}

// orElse returns v, or other where v is zero.
func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}
