package locker

import (
	"context"
	"errors"
	"time"
)

// sweep removes a token that nobody owns, if there is one, and the place that was to
// get the lock, if there is one. Where doubt is set, the reply to a Take was lost, and the lock may have been
// taken. The command, or a repetition of it, may even be on its way still, and
// reach Redis after a sweep that found nothing, or found what another repetition
// had left. So the token is looked for again, at growing intervals, for the time
// of one lease. A lock that is taken still later blocks others for one lease, like
// that of a killed holder.
//
// It runs once in the caller and then from timers, so no goroutine waits for
// it, and it ends by itself.
func (l *Lease) sweep(age, timeout time.Duration, doubt bool) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answered := true
	if l.token != "" {
		err := l.algorithm.Release(ctx, l.key, l.token, 0)
		answered = err == nil || errors.Is(err, ErrExpired) || errors.Is(err, ErrLost)
	}
	if relay, ok := l.algorithm.(Relay); ok && l.place != "" {
		answered = relay.Quit(ctx, l.key, l.place) == nil && answered
	}
	if answered && !doubt || age >= l.options.Lease {
		return
	}
	next := max(20*time.Millisecond, age)
	time.AfterFunc(next, func() { l.sweep(age+next, l.options.Timeout, doubt) })
}

// sweepLater is sweep for a token that may be in the lock, where the caller has no
// time.
func (l *Lease) sweepLater() {
	time.AfterFunc(0, func() { l.sweep(0, l.options.Timeout, true) })
}
