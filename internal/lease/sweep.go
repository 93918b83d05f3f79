package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Sweeper cleans up, in the background, what a round trip may have left in Redis. The zero value is ready.
//
// After an ambiguous round trip the command, or a repetition of it, may be on its way still, and reach Redis
// after a sweep that found nothing, or found what another repetition had left. So it is done again, at
// growing intervals, for the time of one lease. A lock that is taken still later blocks others for one
// lease, like that of a killed holder.
//
// It runs from timers, so no goroutine waits for it. It ends by itself, or when the Lines are closed.
type Sweeper struct{ closed atomic.Bool }

// Sweep calls clean, which reports whether Redis answered, in the background.
func (s *Sweeper) Sweep(o *Options, ambiguous bool, clean func(context.Context) bool) {
	s.after(0, func() { s.run(o, 0, o.Timeout, ambiguous, clean) })
}

// sweep is Sweep, but the first time is in the caller, for as long as first, if that is not 0.
func (s *Sweeper) sweep(o *Options, first time.Duration, ambiguous bool, clean func(context.Context) bool) {
	if first > 0 {
		s.run(o, 0, first, ambiguous, clean)
	} else {
		s.Sweep(o, ambiguous, clean)
	}
}

// run calls clean for at most most, age after the round trip, and sees to it that it is called again.
func (s *Sweeper) run(o *Options, age, most time.Duration, ambiguous bool, clean func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	answered := false
	defer func() { // also if the client ends the goroutine
		if answered && !ambiguous || age >= o.Lease {
			return
		}
		next := max(20*time.Millisecond, age)
		s.after(next, func() { s.run(o, age+next, o.Timeout, ambiguous, clean) })
	}()
	answered = clean(ctx)
}

// after runs f after d, in a goroutine of its own, unless the Sweeper is closed by then.
func (s *Sweeper) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		if !s.closed.Load() {
			f()
		}
	})
}

// Free frees the lock of key in the background, if one of these tokens has it, or gets it by a command that
// is on its way still. "" is no token.
func (s *Sweeper) Free(o *Options, a Algorithm, key string, tokens ...string) {
	for _, token := range tokens {
		if token != "" {
			s.Sweep(o, true, func(ctx context.Context) bool { return freed(ctx, a, key, token) })
		}
	}
}

// freed frees the lock of key if token has it, and reports whether Redis answered.
func freed(ctx context.Context, a Algorithm, key, token string) bool {
	err := a.Release(ctx, key, token, 0)
	return err == nil || errors.Is(err, ErrExpired) || errors.Is(err, ErrLost)
}
