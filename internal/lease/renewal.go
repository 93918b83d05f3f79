package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Ring is called by the alarm. It extends the lease, or finds that the lease has expired.
func (l *Lease) Ring() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case l.state != holding:
	case !l.term.Held(now):
		l.lose(l.term.Overdue(now))
	case l.extending != nil: // the extension sets the alarm anew when it ends
		l.locks.SetAlarm(&l.alarm, l, l.term.End())
	case now.Before(l.term.Renewal()):
		l.locks.SetAlarm(&l.alarm, l, l.term.Renewal())
	default:
		_ = l.extend(context.Background(), l.term.Span(now))
	}
}

func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("locker: Extend by %v: it must be at least 1ms", d)
	}
	state, err := l.extendHeld(ctx, d)
	switch {
	case state == waiting:
		return errNoLease
	case state >= releasing:
		err = worded{ErrExpired, "the lease was released"} // who has the lock now is not known
	case state == lost && err == nil:
		// A holder that was notified of the loss does not get the lock back. This only asks who has the lock. If the
		// token still has it, the lock must be released.
		err = l.algorithm.Release(ctx, l.ticket.Key, l.Token(), 0)
		if err == nil {
			err = ErrExpired
		}
	}
	if err != nil {
		return fmt.Errorf("locker: extending %s: %w", excerpt.Of(l.ticket.Key), err)
	}
	return nil
}

// extendHeld extends the lease if it is held, and returns what it is afterwards.
func (l *Lease) extendHeld(ctx context.Context, d time.Duration) (state, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.waitForExtension(ctx)
	if err != nil {
		return l.state, err
	}
	now := time.Now()
	if l.state == holding && !l.term.Held(now) { // the alarm is late, as after a pause of the process
		l.lose(l.term.Overdue(now))
	}
	if l.state == holding && ctx.Err() != nil { // an algorithm may send its commands nevertheless
		return l.state, unsent(ctx)
	}
	if l.state == holding {
		err = l.extend(ctx, l.term.AtLeast(now, d))
		if l.state == holding && err == nil {
			l.term.Prolong()
		}
	}
	return l.state, err
}

// extend makes the lease end d from now. It is called with mu held and no extension under way. It gives mu up during the
// round trip, and takes it again even if the algorithm ends the goroutine.
func (l *Lease) extend(ctx context.Context, d time.Duration) error {
	// A reply after the lease's end would be useless. If the round trip takes that long, the alarm must find that the
	// lease has expired without waiting for the reply.
	ctx, cancel := context.WithDeadline(ctx, l.term.End())
	defer cancel()
	l.term.Asked(time.Now(), d)
	l.locks.SetAlarm(&l.alarm, l, l.term.End())
	token, over := l.term.Token, make(chan struct{})
	l.extending = over
	l.mu.Unlock()
	err := func() error {
		defer func() {
			l.mu.Lock()
			l.extending = nil
			close(over)
		}()
		return l.algorithm.Extend(ctx, l.ticket.Key, token, d)
	}()
	if l.state != holding {
		return err
	}
	now := time.Now()
	why := l.term.Answered(now, err)
	switch {
	case why != nil:
		l.lose(why)
	case err != nil:
		l.locks.SetAlarm(&l.alarm, l, l.term.Retry(now))
	default:
		l.locks.SetAlarm(&l.alarm, l, l.term.Renewal())
	}
	return err
}

// waitForExtension waits until no extension is under way, or ctx ends: only that is an error. It is called with mu held,
// and gives mu up meanwhile.
func (l *Lease) waitForExtension(ctx context.Context) error {
	done := ctx.Done() // if ctx is nil, this panics while mu is held, as whoever unlocks it expects
	for l.extending != nil {
		over := l.extending
		l.mu.Unlock()
		select {
		case <-over:
			l.mu.Lock()
		case <-done:
			l.mu.Lock()
			return unsent(ctx)
		}
	}
	return nil
}

// unsent is the error of a caller whose ctx has ended before its command was sent. That is no fault of Redis.
func unsent(ctx context.Context) error {
	cause := context.Cause(ctx)
	return worded{fmt.Errorf("%w: %w", transport.ErrRefused, cause), fmt.Sprintf("nothing was sent: %v", cause)}
}
