package lease

import (
	"context"
	"errors"
	"time"
)

// Sweep cleans up, in the background, what an exchange may have left in Redis whose outcome is
// not known, or does not matter to anybody any more. clean reports whether Redis answered. After
// an ambiguous exchange the command, or a repetition of it, may even be on its way still, and
// reach Redis after a sweep that found nothing, or found what another repetition had left. So it
// is done again, at growing intervals, for the time of one lease. A lock that is taken still
// later blocks others for one lease, like that of a killed holder.
//
// It runs from timers, so no goroutine waits for it. It ends by itself, or with Close.
func (g *Group) Sweep(o Options, ambiguous bool, clean func(context.Context) bool) {
	g.after(0, func() { g.sweep(o, o.Timeout, ambiguous, clean) })
}

// sweep is Sweep, but the first time is in the caller, for as long as first.
func (g *Group) sweep(o Options, first time.Duration, ambiguous bool, clean func(context.Context) bool) {
	var run func(age, most time.Duration)
	run = func(age, most time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		if clean(ctx) && !ambiguous || age >= o.Lease {
			return
		}
		next := max(20*time.Millisecond, age)
		g.after(next, func() { run(age+next, o.Timeout) })
	}
	run(0, first)
}

// after runs f after d, in a goroutine of its own, unless the Group is closed by then.
func (g *Group) after(d time.Duration, f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Load() {
		return
	}
	if g.timers == nil {
		g.timers = make(map[*time.Timer]struct{})
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		g.mu.Lock()
		delete(g.timers, timer)
		g.mu.Unlock()
		if !g.closed.Load() {
			f()
		}
	})
	g.timers[timer] = struct{}{}
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
			l.group.Sweep(l.options, true, dead.free)
		}
	}
}
