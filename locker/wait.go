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

	ctx    context.Context // made when there is something to wait for: a deadline is not free
	cancel context.CancelFunc
}

// context returns the caller's context, ending with [ErrTimeout] when the wait is
// over.
func (w *wait) context() context.Context {
	if w.ctx == nil {
		w.ctx, w.cancel = context.WithDeadlineCause(w.caller, w.began.Add(w.limit), ErrTimeout)
	}
	return w.ctx
}

// left is what remains of the wait.
func (w *wait) left() time.Duration {
	end := w.began.Add(w.limit)
	if sooner, ok := w.caller.Deadline(); ok && sooner.Before(end) {
		end = sooner
	}
	return time.Until(end)
}

// stop ends the wait.
func (w *wait) stop() {
	if w.cancel != nil {
		w.cancel()
	}
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
