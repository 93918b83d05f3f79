package locker

import (
	"context"
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
	key     string
	label   string // see WithLabel
	options Options
	line    *line // its turn there is given up once, by leave or by passing it on
	wait    *wait // of the caller who got it

	// What the lock is held by. Set before start, by whoever took the lock or
	// passed it on.
	token     string
	algorithm Algorithm
	turn      turn

	mu     sync.Mutex // guards everything below; never held during I/O
	state  leaseState
	end    time.Time // when the lease runs out, by this process's clock
	limit  time.Time // up to when the watchdog extends it
	timer  *time.Timer
	lost   chan struct{}           // made when asked for
	onLost context.CancelCauseFunc // what to cancel when it is lost, if anything

	// One extension at a time is on its way, so that end is that of the last one.
	extending bool
	extended  sync.Cond // extending became false
}

type leaseState int

const (
	holding leaseState = iota
	released
	lost
)

// start begins the lease, which lasts until end. sent is the time before the
// winning command was sent: Redis started counting later than that.
func (l *Lease) start(sent, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extended.L = &l.mu
	l.end = end
	l.limit = sent.Add(l.options.MaxHold)
	l.timer = time.AfterFunc(l.untilCheck(time.Now()), l.check)
}

// Validity returns for how long the holder may rely on the lease if it is not
// extended any more: 0 once it was lost or given back.
func (l *Lease) Validity() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != holding {
		return 0
	}
	return max(0, time.Until(l.end))
}

// Span returns for how long the lock is to be given to the holder from now on: for a
// lease, or for what MaxHold leaves of one.
func (l *Lease) Span() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Millisecond, wholeMillis(min(l.options.Lease, time.Until(l.limit))))
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
//
// cancel must not call the lease's methods.
func (l *Lease) OnLost(cancel context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == lost {
		cancel(ErrLost)
		return
	}
	if before := l.onLost; before != nil {
		also := cancel
		cancel = func(cause error) { before(cause); also(cause) }
	}
	l.onLost = cancel
}

// Extend makes the lease end d from now, beyond MaxHold if need be. The watchdog
// goes on: a d that is shorter than what it keeps anyway does not last. d is at
// least 1 ms. The error is [ErrExpired] where the lease had run out and nobody
// took the lock, [ErrLost] where another did, and [ErrUnavailable] where Redis
// did not say; the lease goes on then, for as long as it lasts.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("locker: Extend by %v: it must be at least 1ms", d)
	}
	if err := l.extend(ctx, d); err != nil {
		return fmt.Errorf("locker: extending %s: %w", l.key, err)
	}
	return nil
}

func (l *Lease) extend(ctx context.Context, d time.Duration) error {
	state, err := l.extendHeld(ctx, d)
	switch {
	case state == released:
		return fmt.Errorf("it was given back: %w", ErrExpired)
	case state == lost && err == nil:
		// Who was told of a loss does not get the lock back. This only asks who
		// has it; if the token is still there, it is of no more use.
		if err = l.algorithm.Release(ctx, l.key, l.token, 0); err == nil {
			err = ErrExpired
		}
	}
	return err
}

// extendHeld extends the lease if it is held, and returns what it is afterwards.
func (l *Lease) extendHeld(ctx context.Context, d time.Duration) (leaseState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.extending {
		l.extended.Wait()
	}
	var err error
	if l.state == holding {
		err = l.extendLocked(ctx, d)
	}
	return l.state, err
}

// Unlock gives the lock back. The error is [ErrExpired] where the lease had run
// out and nobody took the lock, [ErrLost] where another did: what was done under
// the lock may then have been done beside another holder. They may come in vain
// after a connection broke: the release is repeated then, and finds the lock
// gone. With [ErrUnavailable] the lock stays shut until its lease ends.
//
// A lock is given back even if ctx has ended: only Options.Timeout bounds it.
// A second Unlock does nothing and returns nil, so it can be deferred.
func (l *Lease) Unlock(ctx context.Context) error { return l.release(ctx, 0) }

// UnlockAfter gives the lock back, but leaves it shut for delay more: a
// cool-down, for what must not be done again too soon. Otherwise it is like
// Unlock.
func (l *Lease) UnlockAfter(ctx context.Context, delay time.Duration) error {
	if delay < 0 {
		return fmt.Errorf("locker: UnlockAfter %v: the delay must not be negative", delay)
	}
	return l.release(ctx, wholeMillis(delay))
}

func (l *Lease) release(ctx context.Context, after time.Duration) error {
	was := l.letGo(after)
	if was == released {
		return nil
	}
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	token := l.token
	if was == holding {
		// Whoever is next finds the lock free, or already has it. The turn must go
		// on even where the algorithm panics.
		defer func() {
			if token != "" {
				l.leave()
			}
		}()
		if after == 0 {
			var err error
			if token, err = l.pass(ctx); token == "" || err != nil {
				return err
			}
		}
	}
	err := l.algorithm.Release(ctx, l.key, token, after)
	if was == lost && err == nil {
		err = ErrExpired // it was still there, but the holder was told otherwise
	}
	if err != nil {
		return fmt.Errorf("locker: releasing %s: %w", l.key, err)
	}
	return nil
}

// letGo stops the watchdog, and returns the state that ends here. An extension
// that is on its way finds no token after a release. But it would replace a
// cool-down, so that has to come after it.
func (l *Lease) letGo(after time.Duration) leaseState {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.state
	l.state = released
	l.timer.Stop()
	for was != released && after > 0 && l.extending {
		l.extended.Wait()
	}
	return was
}
