package lease

import (
	"context"
	"errors"
	"time"
)

// Sweep cleans up, in the background, what a round trip may have left in Redis. clean reports
// whether Redis answered. After an ambiguous round trip the command, or a repetition of it, may be
// on its way still, and reach Redis after a sweep that found nothing, or found what another
// repetition had left. So it is done again, at growing intervals, for the time of one lease. A
// lock that is taken still later blocks others for one lease, like that of a killed holder.
//
// It runs from timers, so no goroutine waits for it. It ends by itself, or with Close.
func (g *Group) Sweep(o Options, ambiguous bool, clean func(context.Context) bool) {
	g.sweep(o, 0, ambiguous, clean)
}

// sweep is Sweep, but the first time is in the caller, for as long as first, if that is not 0.
func (g *Group) sweep(o Options, first time.Duration, ambiguous bool, clean func(context.Context) bool) {
	var run func(age, most time.Duration)
	run = func(age, most time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		answered := false
		defer func() { // also where the client ends the goroutine
			if answered && !ambiguous || age >= o.Lease {
				return
			}
			next := max(20*time.Millisecond, age)
			g.after(next, func() { run(age+next, o.Timeout) })
		}()
		answered = clean(ctx)
	}
	if first > 0 {
		run(0, first)
	} else {
		g.after(0, func() { run(0, o.Timeout) })
	}
}

// after runs f after d, in a goroutine of its own, unless the Group is closed by then.
func (g *Group) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		if !g.closed.Load() {
			f()
		}
	})
}

// free frees the lock if the lease's token has it, for a sweep.
func (l *Lease) free(ctx context.Context) (answered bool) {
	err := l.algorithm.Release(ctx, l.key, l.token, 0)
	return err == nil || errors.Is(err, ErrExpired) || errors.Is(err, ErrLost)
}

// Sweep frees the lock of l in the background if one of these tokens has it, or gets it by
// a command that is on its way still.
func (l *Lease) Sweep(tokens ...string) {
	for _, token := range tokens {
		if token != "" {
			dead := &Lease{key: l.key, token: token, algorithm: l.algorithm}
			l.group.Sweep(*l.options, true, dead.free)
		}
	}
}
