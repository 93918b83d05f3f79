// Package lease is the engine of all locks: it waits for them, acquires, renews, passes on and releases them. Package
// locker is its public interface, and package records locks sessions with it.
//
// # Words
//
//   - A token identifies one holder of one lock. A lease is the time after which Redis lets the lock expire.
//   - A ticket is one caller in the line of a key, within one process. The head of the line alone asks Redis for the
//     lock. When it has the lock, it owns the key, until it leaves the line or passes the key on.
//   - A term is the time for which the lock is ours, as far as its owner knows.
//   - The queue is a list in Redis of the processes that wait for a lock. Each process has a place in it, and a
//     notifier wakes the place when its turn has come.
//   - A quota bounds how long a process may pass a lock on among its own callers.
//   - A sweep cleans up after a round trip that has failed, but may have been done.
//
// # Files
//
// line.go is the line of one process, with the tickets of ticket.go and the timers of alarm.go. holder.go is what is known
// of a lock's holder. contest.go is how the head of a line competes with other processes for the lock. queue.go is its
// place in the queue, notifier.go and notifiers.go wake it, and quota.go has the quota. term.go knows how long a lock is
// ours, and why it was lost. sweep.go cleans up. lease.go is a lock that stands alone: renewal.go extends it, and unlock.go passes
// it on or releases it. Package records owns its locks itself. algorithm.go is what one kind of lock does, and spin.go is the spin lock. reply.go reads the replies of
// all locks' scripts. The scripts are in .lua files; package lua puts them together from the parts that they share.
package lease

import (
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// The errors of locks. Package locker documents them.
var (
	ErrTimeout        = errors.New("lock is still held by another holder")
	ErrTooManyWaiters = errors.New("too many callers wait for this lock already")
	ErrLost           = errors.New("lock was lost")
	ErrExpired        = errors.New("lock expired, and nobody has it now")
	ErrForeign        = errors.New("the lock's key belongs to something else")
	ErrUnavailable    = transport.ErrUnavailable
)

// An Algorithm is what one kind of lock does on Redis: single tries, without waiting.
// Package locker documents it, except for Take.
type Algorithm interface {
	// Take tries to make token the holder of key for span. Only a [Queue] is given a place. If another has the
	// lock, Take puts the place at the end of the queue, unless it is there already. Once the turn of the place has
	// come, Take succeeds.
	Take(ctx context.Context, key, token, place string, span time.Duration) (Attempt, error)
	// Extend makes the lease of token end d from now.
	Extend(ctx context.Context, key, token string, d time.Duration) error
	Release(ctx context.Context, key, token string, after time.Duration) error
}

// A Cautious algorithm lets its holders rely on less than all of a lease, since clocks may differ.
type Cautious interface {
	Valid(lease time.Duration) time.Duration
}

// A Queue is an Algorithm whose lock goes from one holder to the next without being free in between: within one
// process, or by a queue in Redis next to the lock.
type Queue interface {
	Algorithm
	// Quit takes place out of the queue. If its turn had come, the next place has the turn.
	Quit(ctx context.Context, key, place string) error
	// Pass gives the lock from one token to another, for span. others reports whether other processes wait. Errors as
	// with Extend.
	Pass(ctx context.Context, key, from, to string, span time.Duration) (others bool, err error)
}

// An Attempt is the outcome of one Take; see locker.Attempt.
type Attempt struct {
	Taken  bool
	Holder string
	Left   time.Duration
	// Queued: the place is in the queue. Joined: it was not before.
	Queued, Joined bool
	MaybeTaken     bool // locker.Attempt.Ambiguous
}
