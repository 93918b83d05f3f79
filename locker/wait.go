package locker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A wait is how long one caller has for its lock. It is used by one goroutine.
type wait struct {
	caller   context.Context
	began    time.Time
	limit    time.Duration
	again    bool          // it had its turn, and lost it
	cleaning time.Duration // what the caller has waited for cleaning up
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

// failed returns the error of the wait for a key.
func (w *wait) failed(key string, err error) error {
	return fmt.Errorf("locker: waited %v for %s: %w", time.Since(w.began).Round(time.Millisecond), key, err)
}

// silent reports whether err is that of a Redis that hangs: it had all the time that an
// exchange has. Where the caller had less, its end says nothing about Redis.
func (w *wait) silent(err error) bool {
	end, ok := w.caller.Deadline()
	// The timer of its end may be late.
	mine := ok && !time.Now().Before(end) || errors.Is(w.caller.Err(), context.DeadlineExceeded)
	return !mine && unanswered(err)
}

// unanswered reports whether err is that of an exchange that was waited for in vain. Nobody
// waits for another one after that.
func unanswered(err error) bool { return isTimeout(err) && errors.Is(err, ErrUnavailable) }

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
