package locker

import (
	"context"
	"time"
)

// An Algorithm is what one kind of lock does on Redis: single tries, without
// waiting. A [Guard] makes a lock of it.
//
// A token names one holder of one lock, and is never used again. All methods are
// safe to repeat with the same arguments, since a reply may be lost after Redis
// did the work. Errors other than the named ones wrap [ErrUnavailable], or end
// the wait as they are. Times are whole milliseconds, which is what Redis counts
// in.
type Algorithm interface {
	// Take tries to make token the holder of key for the time of a lease. A
	// token that is the holder already succeeds, too.
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

// An Attempt is what one Take came to. The zero value means that another has the
// lock, and nothing is known about it.
type Attempt struct {
	// Taken: the token has the lock.
	Taken bool
	// Holder is the token of whoever has the lock instead, if it left one.
	Holder string
	// Left is how long the holder's lease still lasts. 0: that is not known.
	Left time.Duration
	// Queued: the place that was given to Queue is in the queue. Joined: it was not
	// before.
	Queued, Joined bool
	// Doubt: an answer was lost, so that something may be locked all the same.
	Doubt bool
}
