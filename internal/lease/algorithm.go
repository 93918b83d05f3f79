// Package lease is the engine of all locks: it waits, takes, renews, hands over and gives
// back. Package locker is what users see of it, and package store holds sessions by it.
//
// # Words
//
//   - A token names one holder of one lock; a lease is a lock that is held, renewed by a timer.
//   - Callers wait for a key within one process, in a Group. One of them has the turn: only it
//     tries at Redis, and its holder keeps the turn until the lock is given back.
//   - The queue is the processes that wait at Redis. Each has a place in it, and a notifier
//     wakes that. The holder is who was last seen to hold a lock.
//   - A handoff gives a lock to the next caller of the same process, with a round trip or
//     without one. A quota bounds for how long, where other processes wait.
//   - A round trip is ambiguous if it may have been done or not. A sweep cleans up after it.
//
// # Files
//
// acquire.go goes from Lock to the lease, by way of the callers (callers.go) and the queue
// (queue.go, notifier.go, notifiers.go). lease.go holds it and gives it back, renew.go renews it, by the
// timer of alarm.go, handoff.go hands it over, sweep.go cleans up. algorithm.go is what one kind of lock does, spin.go the
// spin lock, and how to read the replies of all locks' scripts.
//
// # Concurrency
//
// Group.mu, Lease.mu and notifier.mu are held for moments only, never during a round trip. A
// goroutine that holds a Lease's may take its Group's, not the other way around.
package lease

import (
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/locker/transport"
)

// The errors of locks. Package locker documents them.
var (
	ErrTimeout        = errors.New("lock is still held by another")
	ErrTooManyWaiters = errors.New("too many wait for this lock already")
	ErrLost           = errors.New("lock was lost")
	ErrExpired        = errors.New("lock expired, and nobody took it")
	ErrForeign        = errors.New("the lock's key belongs to something else")
	ErrUnavailable    = transport.ErrUnavailable
)

// An Algorithm is what one kind of lock does on Redis: single tries, without waiting.
// Package locker documents it, except for Take.
type Algorithm interface {
	// Take tries to make token the holder of key for span. With a place, which only
	// a [Queue] is given, it puts that at the end of the queue where another has the
	// lock, unless it is there already; once the turn has come to place, Take succeeds.
	Take(ctx context.Context, key, token, place string, span time.Duration) (Attempt, error)
	Extender
	Release(ctx context.Context, key, token string, after time.Duration) error
	Valid(lease time.Duration) time.Duration
}

// An Extender makes the lease of token end d from now. A lease calls it by itself, from a timer.
type Extender interface {
	Extend(ctx context.Context, key, token string, d time.Duration) error
}

// A Queue is an Algorithm whose lock goes from one holder to the next without being free in
// between: within one process, or by a queue in Redis next to the lock.
type Queue interface {
	Algorithm
	// Quit takes place out of the queue; if the turn had come to it, the next one has it.
	Quit(ctx context.Context, key, place string) error
	// Pass gives the lock from one token to another, for span. others reports whether
	// other processes wait. Errors as with Extend.
	Pass(ctx context.Context, key, from, to string, span time.Duration) (others bool, err error)
}

// An Attempt is the outcome of one Take; see locker.Attempt.
type Attempt struct {
	Taken bool
	// Data is what was read together with the lock: the [Lease.Data] of all that
	// hold it until it is freed. It extends the lock. nil: nothing, and the algorithm does.
	Data   Extender
	Holder string
	Left   time.Duration
	// Queued: the place is in the queue. Joined: it was not before.
	Queued, Joined bool
	Ambiguous      bool
}
