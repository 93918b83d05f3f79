package locker

import (
	"context"
	"errors"
	"time"
)

// sweep cleans up what an exchange may have left in Redis whose answer nobody has, or
// nobody waits for any more. clean reports whether it was answered. Where doubt is set, a
// reply was lost. The command, or a repetition of it, may even be on its way still, and
// reach Redis after a sweep that found nothing, or found what another repetition had
// left. So it is done again, at growing intervals, for the time of one lease. A lock that
// is taken still later blocks others for one lease, like that of a killed holder.
//
// It runs once in the caller, for as long as first, and then from timers, so no goroutine
// waits for it, and it ends by itself.
func (o Options) sweep(first time.Duration, doubt bool, clean func(context.Context) bool) {
	var run func(age, most time.Duration)
	run = func(age, most time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		if clean(ctx) && !doubt || age >= o.Lease {
			return
		}
		next := max(20*time.Millisecond, age)
		time.AfterFunc(next, func() { run(age+next, o.Timeout) })
	}
	run(0, first)
}

// sweepLater is sweep where the caller has no time.
func (o Options) sweepLater(doubt bool, clean func(context.Context) bool) {
	time.AfterFunc(0, func() { o.sweep(o.Timeout, doubt, clean) })
}

// free frees the lock if the lease's token has it, for a sweep.
func (l *Lease) free(ctx context.Context) (answered bool) {
	err := l.algorithm.Release(ctx, l.key, l.token, 0)
	return err == nil || errors.Is(err, ErrExpired) || errors.Is(err, ErrLost)
}

// Sweep frees the lock of l in the background, by algorithm a, if one of these tokens has
// it or gets it by a command that is on its way still.
func (l *Lease) Sweep(a Algorithm, tokens ...string) {
	for _, token := range tokens {
		if token != "" {
			dead := &Lease{key: l.key, token: token, algorithm: a}
			l.options.sweepLater(true, dead.free)
		}
	}
}
