package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A Sweeper removes, in the background, what a round trip may have left in Redis. The zero value is ready for use.
//
// If a round trip may have been done, its command, or a copy of it, may still be on its way, and reach Redis after a
// sweep. So the sweep is repeated, at growing intervals, for the time of one lease. If a command comes even later and
// takes the lock, it blocks others for one lease, like the lock of a killed holder.
//
// A Sweeper runs from timers, so no goroutine waits for it. It ends by itself, or when the Lines are closed.
type Sweeper struct {
	// Swept is called after a sweep has released the lock of key. It is set before the first sweep, or nil.
	Swept func(key string)

	closed atomic.Bool
}

// Sweep calls clean in the background. clean reports whether Redis replied. maybeDone tells that the round trip may
// have been done.
func (s *Sweeper) Sweep(o *Options, maybeDone bool, clean func(context.Context) bool) {
	s.sweepFirst(o, 0, maybeDone, clean)
}

// sweepFirst is like Sweep, but if first is more than 0, the first sweep is done before it returns, for at most first.
func (s *Sweeper) sweepFirst(o *Options, first time.Duration, maybeDone bool, clean func(context.Context) bool) {
	if first > 0 {
		s.run(o, 0, first, maybeDone, clean)
	} else if !s.closed.Load() {
		go s.run(o, 0, o.Timeout, maybeDone, clean)
	}
}

// run calls clean for at most most. It is called age after the round trip, and schedules the next call.
func (s *Sweeper) run(o *Options, age, most time.Duration, maybeDone bool, clean func(context.Context) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	replied := false
	defer func() { // also if the client ends the goroutine
		if replied && !maybeDone || age >= o.Lease {
			return
		}
		next := max(20*time.Millisecond, age)
		time.AfterFunc(next, func() {
			if !s.closed.Load() {
				s.run(o, age+next, o.Timeout, maybeDone, clean)
			}
		})
	}()
	replied = clean(ctx)
}

// Free releases the lock of key in the background, if one of these tokens has it, or, with maybeDone, gets it by a command
// that is still on its way. "" is no token.
func (s *Sweeper) Free(o *Options, maybeDone bool, a Algorithm, key string, tokens ...string) {
	for _, token := range tokens {
		if token != "" {
			s.freeFirst(o, 0, maybeDone, a, key, token)
		}
	}
}

// freeFirst is Free for one token; for first see sweepFirst.
func (s *Sweeper) freeFirst(o *Options, first time.Duration, maybeDone bool, a Algorithm, key, token string) {
	s.sweepFirst(o, first, maybeDone, func(ctx context.Context) bool {
		err := a.Release(ctx, key, token, 0)
		if err == nil && s.Swept != nil {
			s.Swept(key)
		}
		return err == nil || errors.Is(err, ErrExpired) || errors.Is(err, ErrLost)
	})
}
