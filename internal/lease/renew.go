package lease

import (
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

// renew is what the timer calls: it extends the lease, or finds that it is over.
func (l *Lease) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch wait := l.untilRenewal(now); {
	case l.state != holding:
	case !now.Before(l.end):
		l.lose(l.overdue(now))
	case l.extending != nil: // which sets the timer anew when it is done
		l.setTimer(l.end.Sub(now))
	case wait > 0:
		l.setTimer(wait)
	default:
		_ = l.extend(context.Background(), min(l.options.Lease, l.limit.Sub(now)))
	}
}

// extendHeld extends the lease if it is held, and returns what it is afterwards.
func (l *Lease) extendHeld(ctx context.Context, d time.Duration) (state, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waitForExtension()
	var err error
	if l.state == holding {
		err = l.extend(ctx, d)
		if l.state == holding && err == nil && l.limit.Before(l.end) {
			l.limit = l.end
		}
	}
	return l.state, err
}

// extend makes the lease end d from now. It is called with mu held, and gives it up during
// the round trip; the caller sees to it that there is no other.
func (l *Lease) extend(ctx context.Context, d time.Duration) error {
	d = wholeMillis(d)
	// An answer after the lease's end would be useless. If it takes that long, the timer
	// must not wait for it to find the lease over.
	ctx, cancel := context.WithDeadline(ctx, l.end)
	defer cancel()
	sent, before := time.Now(), l.end
	if sooner := l.validUntil(sent, d); sooner.Before(l.end) {
		l.end = sooner // from now on it may be so, whatever the answer
	}
	l.setTimer(time.Until(l.end))
	err := l.exchange(ctx, d)
	now := time.Now()

	switch {
	case l.state != holding:
	case err == nil:
		l.end, l.asked, l.trouble = l.validUntil(sent, d), sent.Sub(l.began), nil
		l.setTimer(l.untilRenewal(now))
	case errors.Is(err, ErrLost), errors.Is(err, ErrExpired), errors.Is(err, ErrForeign):
		l.lose(Lost(err))
	default: // Redis is unavailable; it may be back before the lease is over
		if l.troubled(sent, err); !now.Before(l.end) {
			l.lose(l.overdue(now))
			return err
		}
		if !scripting.Ambiguous(err) {
			l.end = before
		}
		l.setTimer(min(l.options.Lease/10, l.end.Sub(now)))
	}
	return err
}

// exchange is the part of extend without mu.
func (l *Lease) exchange(ctx context.Context, d time.Duration) error {
	over := make(chan struct{})
	l.extending = over
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.extending = nil
		close(over)
	}()
	return l.data.Extend(ctx, l.key, l.token, d)
}

// waitForExtension waits until none is on its way. It is called with mu held, and gives it up
// meanwhile.
func (l *Lease) waitForExtension() {
	for l.extending != nil {
		over := l.extending
		l.mu.Unlock()
		<-over
		l.mu.Lock()
	}
}

// setTimer makes the lease's own timer fire in d. It is called with mu held.
func (l *Lease) setTimer(d time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.renew)
	} else {
		l.timer.Reset(d)
	}
}

// stopTimer is called with mu held.
func (l *Lease) stopTimer() {
	if l.timer != nil {
		l.timer.Stop()
	}
}
