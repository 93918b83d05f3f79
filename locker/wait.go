package locker

import (
	"context"
	"time"
)

// A wait is how long one caller has for its lock. It is used by one goroutine.
type wait struct {
	caller context.Context
	began  time.Time
	limit  time.Duration
	again  bool // it had its turn, and lost it
}

// over returns why the wait has ended, [ErrTimeout] or the cause of the caller's end,
// or nil. A context with a deadline would tell the same, but is not free.
func (w *wait) over() error {
	if ended := context.Cause(w.caller); ended != nil {
		return ended
	}
	if w.remains() <= 0 {
		return ErrTimeout
	}
	return nil
}

// remains is what is left of the limit.
func (w *wait) remains() time.Duration { return time.Until(w.began.Add(w.limit)) }

// left is remains, or less where the caller's time is over sooner.
func (w *wait) left() time.Duration {
	end := w.began.Add(w.limit)
	if sooner, ok := w.caller.Deadline(); ok && sooner.Before(end) {
		end = sooner
	}
	return time.Until(end)
}

// pause sleeps for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
