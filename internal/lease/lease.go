package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

// A Lease is a lock that is held, and before that, the wait for it. The methods that
// locker.Lease has, too, are documented there.
type Lease struct {
	key       string
	algorithm Algorithm
	options   *Options // shared by many, and not changed
	label     string
	span      time.Duration // for which the lock is taken at a time, in whole milliseconds
	group     *Group

	// The wait for it, which is its caller's alone.
	caller context.Context
	began  time.Time
	again  bool // it has waited for its turn before
	// called gets one value: nil when one that waits has the turn, and perhaps the lock; an
	// error when there is nothing to wait for any more.
	called chan error
	place  *place // of the process in the queue, if it has one; goes with the turn

	// What the lock is held by. Set before it begins, by the caller or by the lease before it.
	token  string
	data   Extender
	handed bool
	quota  quota

	alarm alarm // of the wait, and then of the lease; guarded by the group's mu

	mu      sync.Mutex // guards everything below; never held during I/O
	state   state
	turn    bool                       // it has the turn at the key
	end     time.Time                  // when the lease runs out, by this process's clock
	asked   time.Duration              // after began: when it was taken, or an extension was sent that has succeeded
	limit   time.Time                  // up to when it is renewed
	timer   *time.Timer                // once the alarm has gone off, or where there is none
	lost    chan struct{}              // closed when it is lost; nil until somebody asks for it
	onLost  []context.CancelCauseFunc  // to be called when it is lost
	one     [1]context.CancelCauseFunc // room for the first of them, nearly always the only one
	trouble *trouble

	// One extension at a time is on its way, so that end is that of the last one.
	extending chan struct{} // closed when it is over; nil: none is
}

type state int

const (
	holding state = iota
	released
	lost
)

// begin begins a lease that is held since now and lasts until end, unless it is renewed.
func (l *Lease) begin(now, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn, l.end, l.asked = true, end, now.Sub(l.began)
	l.limit = now.Add(l.options.MaxHold)
	now = time.Now()
	wait := l.untilRenewal(now)
	due := now.Add(wait)
	late := min(slack(wait), l.end.Sub(due)) // the end of a lease may not be noticed late
	if !l.group.hold(l, due, late) {
		l.setTimer(wait)
	}
}

// untilRenewal is how long after now the timer is to fire next: when two thirds of a lease are left.
// Where the lease may not end later than it does, a renewal only asks whether the lock is still held:
// a third of a lease after the last time, up to the end. Called with mu held.
func (l *Lease) untilRenewal(now time.Time) time.Duration {
	wait := l.end.Add(-l.span * 2 / 3).Sub(now)
	if !l.end.Before(l.extensible()) {
		wait = min(max(wait, l.began.Add(l.asked+l.options.Lease/3).Sub(now)), l.end.Sub(now))
	}
	return wait
}

// extensible is up to when the timer extends the lease: an extension up to the limit ends before
// it by what the holder may not rely on. Called with mu held.
func (l *Lease) extensible() time.Time {
	return l.limit.Add(l.algorithm.Valid(l.options.Lease) - l.options.Lease)
}

// validUntil is when a lease of d ends that was asked for then. Redis started counting later.
func (l *Lease) validUntil(sent time.Time, d time.Duration) time.Time {
	return sent.Add(l.algorithm.Valid(d))
}

// WholeLease is part of algorithms whose holders may rely on all of a lease.
type WholeLease struct{}

// Valid returns lease.
func (WholeLease) Valid(lease time.Duration) time.Duration { return lease }

// wholeMillis rounds d up to what Redis counts in. If it were cut short there,
// Redis would end a lease before the holder does.
func wholeMillis(d time.Duration) time.Duration {
	return max(d.Truncate(time.Millisecond), (d + time.Millisecond - 1).Truncate(time.Millisecond)) // the sum may overflow
}

// Token returns what names this holder in the lock's key. If the lock was handed over
// without a round trip, Redis does not know it.
func (l *Lease) Token() string { return l.token }

// Data returns the Data of the [Attempt] that took the lock, for this caller or for one
// that handed it over.
func (l *Lease) Data() Extender { return l.data }

// Began returns when the caller came.
func (l *Lease) Began() time.Time { return l.began }

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

func (l *Lease) Lost() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		if l.lost = make(chan struct{}); l.state == lost {
			close(l.lost)
		}
	}
	return l.lost
}

func (l *Lease) OnLost(cancel context.CancelCauseFunc) {
	l.mu.Lock()
	over, why := l.state == lost, l.why()
	if !over {
		if l.onLost == nil {
			l.onLost = l.one[:0]
		}
		l.onLost = append(l.onLost, cancel)
	}
	l.mu.Unlock()
	if over {
		cancel(why)
	}
}

// Lose ends a lease whose lock is known to be lost, or not known to be held any more, because
// of err.
func (l *Lease) Lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == holding {
		l.lose(Lost(err))
	}
}

// lose is called with mu held. The next caller need not wait for a holder that has nothing to
// hold. What the holder wants to be called runs by itself, since it may call the lease's methods.
func (l *Lease) lose(why error) {
	l.stopTimer()
	l.state, l.trouble = lost, &trouble{err: why}
	if l.lost != nil {
		close(l.lost)
	}
	for _, cancel := range l.onLost {
		go tell(cancel, why)
	}
	l.turn = false
	l.group.leave(l)
}

// tell calls what the holder wants to be called. A panic there must not end the process.
func tell(cancel context.CancelCauseFunc, why error) {
	defer func() {
		if v := recover(); v != nil {
			slog.Error("latchkey: what OnLost was to call has failed", slog.String("error", scripting.Panic(v)))
		}
	}()
	cancel(why)
}

func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("locker: Extend by %v: it must be at least 1ms", d)
	}
	state, err := l.extendHeld(ctx, d)
	switch {
	case state == released:
		err = fmt.Errorf("it was given back: %w", ErrExpired)
	case state == lost && err == nil:
		// A holder that was notified of the loss does not get the lock back. This only
		// asks who has it; if the token is still there, it has to go.
		if err = l.algorithm.Release(ctx, l.key, l.token, 0); err == nil {
			err = ErrExpired
		}
	}
	if err != nil {
		return fmt.Errorf("locker: extending %s: %w", excerpt.Of(l.key), err)
	}
	return nil
}

func (l *Lease) Unlock(ctx context.Context) error { return l.UnlockAfter(ctx, 0) }

// UnlockAfter hands the lock over to the next caller, or else releases it.
func (l *Lease) UnlockAfter(ctx context.Context, delay time.Duration) error {
	if delay < 0 {
		return fmt.Errorf("locker: UnlockAfter %v: the delay must not be negative", delay)
	}
	after := wholeMillis(delay)
	next, held, ended := l.Stop(l.quota.others)
	if ended {
		return nil
	}
	ctx, token := context.WithoutCancel(ctx), l.token
	// The next caller finds the lock free, or already has it. The turn goes on even where
	// the algorithm panics.
	defer l.Leave()
	if after > 0 { // an extension that is on its way would replace the cool-down
		l.mu.Lock()
		l.waitForExtension()
		l.mu.Unlock()
	}
	if queue, ok := l.algorithm.(Queue); ok && next.Token != "" && after == 0 {
		others, err := queue.Pass(ctx, l.key, token, next.Token, next.Span)
		if err != nil {
			if !errors.Is(err, ErrLost) && !errors.Is(err, ErrExpired) { // either may have it
				l.Sweep(next.Token, token)
			}
			return fmt.Errorf("locker: passing %s on: %w", excerpt.Of(l.key), err)
		}
		if l.Give(next, others) != nil {
			return nil
		}
		token = next.Token // who was next has left
	}
	err := l.algorithm.Release(ctx, l.key, token, after)
	if !held && err == nil {
		err = ErrExpired // it was still there, but the holder knew otherwise
	}
	switch {
	case err == nil:
		return nil
	case !held:
		return fmt.Errorf("locker: releasing %s: %w (%s)", excerpt.Of(l.key), err, reason(l.Why()))
	default:
		return fmt.Errorf("locker: releasing %s: %w", excerpt.Of(l.key), err)
	}
}
