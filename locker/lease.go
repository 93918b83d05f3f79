package locker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Lease is a lock that is held. Its methods may be called by any goroutine.
//
// Until it is given back, a watchdog extends it every third of Options.Lease,
// for as long as MaxHold allows. The watchdog is a timer; between two extensions
// no goroutine exists.
type Lease struct {
	key, token string
	algorithm  Algorithm
	options    Options
	leave      func() // gives the place in line to the next; called once

	extending sync.Mutex // serialises Extend calls, so that l.end is that of the last one

	mu     sync.Mutex // guards everything below; never held during I/O
	state  leaseState
	end    time.Time // when the lease runs out, by this process's clock
	limit  time.Time // up to when the watchdog extends it
	timer  *time.Timer
	lost   chan struct{}             // made when asked for
	onLost []context.CancelCauseFunc // what to cancel when it is lost
}

type leaseState int

const (
	held leaseState = iota
	released
	lost
)

// start begins the lease. sent is the time before the winning command was sent:
// Redis started counting later than that.
func (l *Lease) start(sent time.Time, lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = sent.Add(lease)
	l.limit = sent.Add(l.options.MaxHold)
	l.timer = time.AfterFunc(l.untilCheck(), l.check)
}

// untilCheck is when the watchdog should look next: when two thirds of a lease
// are left, or at its end where it may not be extended any further. Called with
// mu held.
func (l *Lease) untilCheck() time.Duration {
	if !l.end.Before(l.limit) {
		return time.Until(l.end)
	}
	return time.Until(l.end.Add(-l.options.Lease * 2 / 3))
}

// check is the watchdog: it extends the lease, or finds that it is over.
func (l *Lease) check() {
	l.extending.Lock()
	defer l.extending.Unlock()

	l.mu.Lock()
	now := time.Now()
	if l.state == held && !now.Before(l.end) {
		l.loseLocked()
	}
	if l.state != held {
		l.mu.Unlock()
		return
	}
	end, d := l.end, min(l.options.Lease, l.limit.Sub(now))
	if wait := l.untilCheck(); wait > 0 { // Extend came in between
		l.timer.Reset(wait)
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()

	// An answer after the lease's end would be of no use.
	ctx, cancel := context.WithDeadline(context.Background(), end)
	err := l.algorithm.Extend(ctx, l.key, l.token, d)
	cancel()

	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.state != held:
	case err == nil:
		l.end = now.Add(d)
		l.timer.Reset(l.untilCheck())
	case errors.Is(err, ErrLost), errors.Is(err, ErrExpired), !time.Now().Before(end):
		l.loseLocked()
	default: // Redis is away; it may be back before the lease is over
		l.timer.Reset(min(l.options.Lease/10, time.Until(end)))
	}
}

// loseLocked tells the holder that the lock is gone, and lets the next one in
// line try: it need not wait for a holder that has nothing to hold.
func (l *Lease) loseLocked() {
	l.state = lost
	if l.lost != nil {
		close(l.lost)
	}
	for _, cancel := range l.onLost {
		cancel(ErrLost)
	}
	l.leave()
}

// Lost returns a channel that is closed when the lease ends without having been
// given back: it could not be extended in time, was held longer than MaxHold,
// or its key was taken away. Another may hold the lock from then on.
func (l *Lease) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.lost = make(chan struct{})
		if l.state == lost {
			close(l.lost)
		}
	}
	return l.lost
}

// OnLost arranges for cancel to be called with [ErrLost] when the lease is lost,
// so that a context can end with its lock:
//
//	ctx, cancel := context.WithCancelCause(ctx)
//	defer cancel(nil)
//	lease.OnLost(cancel)
func (l *Lease) OnLost(cancel context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == lost {
		cancel(ErrLost)
		return
	}
	l.onLost = append(l.onLost, cancel)
}

// Extend makes the lease end d from now, beyond MaxHold if need be. The watchdog
// goes on: a d that is shorter than what it keeps anyway does not last. d is at
// least 1 ms. The error is [ErrExpired] where the lease had run out and nobody
// took the lock, [ErrLost] where another did, and [ErrUnavailable] where Redis
// did not say; the lease goes on then.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("locker: Extend by %v: it must be at least 1ms", d)
	}
	l.extending.Lock()
	defer l.extending.Unlock()
	sent := time.Now()
	err := l.algorithm.Extend(ctx, l.key, l.token, d)

	l.mu.Lock()
	defer l.mu.Unlock()
	gone := errors.Is(err, ErrLost) || errors.Is(err, ErrExpired)
	switch {
	case l.state == released:
		return fmt.Errorf("locker: extending %s: it was given back: %w", l.key, ErrExpired)
	case gone && l.state == held:
		l.loseLocked()
	case err == nil && l.state == lost:
		err = ErrExpired // Redis still had it, but the holder was told otherwise
	case err == nil:
		l.end = sent.Add(d)
		if l.limit.Before(l.end) {
			l.limit = l.end
		}
		l.timer.Reset(l.untilCheck())
	}
	if err != nil {
		return fmt.Errorf("locker: extending %s: %w", l.key, err)
	}
	return nil
}

// Unlock gives the lock back. The error is [ErrExpired] where the lease had run
// out and nobody took the lock, [ErrLost] where another did: what was done under
// the lock may then have been done beside another holder. With [ErrUnavailable]
// the lock stays shut until its lease ends.
//
// A second Unlock does nothing and returns nil, so it can be deferred.
func (l *Lease) Unlock(ctx context.Context) error { return l.release(ctx, 0) }

// UnlockAfter gives the lock back, but leaves it shut for delay more: a
// cool-down, for what must not be done again too soon. Errors as with Unlock.
func (l *Lease) UnlockAfter(ctx context.Context, delay time.Duration) error {
	if delay < 0 {
		return fmt.Errorf("locker: UnlockAfter %v: the delay must not be negative", delay)
	}
	return l.release(ctx, delay)
}

func (l *Lease) release(ctx context.Context, after time.Duration) error {
	l.mu.Lock()
	was := l.state
	l.state = released
	l.timer.Stop() // no extension begins after this line
	l.mu.Unlock()
	if was == released {
		return nil
	}
	err := l.algorithm.Release(ctx, l.key, l.token, after)
	if was == held {
		l.leave() // after the release, so that the next one finds the lock free
	} else if err == nil {
		err = ErrExpired // it was still there, but the holder was told otherwise
	}
	if err != nil {
		return fmt.Errorf("locker: releasing %s: %w", l.key, err)
	}
	return nil
}
