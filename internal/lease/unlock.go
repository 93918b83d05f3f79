package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

func (l *Lease) Unlock(ctx context.Context) error { return l.UnlockAfter(ctx, 0) }

// UnlockAfter passes the lock on to the next caller of this process. If there is none, it releases the lock.
func (l *Lease) UnlockAfter(ctx context.Context, delay time.Duration) error {
	if delay < 0 {
		return fmt.Errorf("locker: UnlockAfter %v: the delay must not be negative", delay)
	}
	if l.locks == nil {
		return errNoLease
	}
	after := WholeMillis(delay)
	ctx = context.WithoutCancel(ctx) // if ctx is nil, this panics while nothing has changed yet
	token, held, again := l.stop(after > 0)
	if again {
		return l.firstOutcome()
	}
	// The next caller finds the lock free, or already has it. The line moves on even if the algorithm panics.
	err := scripting.ErrExited
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.state, l.outcome = released, err
		if l.unlocked != nil {
			close(l.unlocked)
		}
		l.leaveLine()
	}()
	err = l.release(ctx, token, held, after)
	return err
}

// firstOutcome waits for the first Unlock, and returns its error. To another caller, nil would mean that the lock was
// released.
func (l *Lease) firstOutcome() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == releasing {
		if l.unlocked == nil {
			l.unlocked = make(chan struct{})
		}
		over := l.unlocked
		l.mu.Unlock()
		<-over
		l.mu.Lock()
	}
	return l.outcome
}

// release passes the lock on or releases it, after stop has returned token and held.
func (l *Lease) release(ctx context.Context, token string, held bool, after time.Duration) error {
	key := l.ticket.Key
	if held && after == 0 {
		passed, next, err := l.pass(ctx, token)
		if err != nil {
			return fmt.Errorf("locker: passing %s on: %w", excerpt.Of(key), err)
		}
		if passed {
			return nil
		}
		token = next
	}
	err := l.algorithm.Release(ctx, key, token, after)
	if !held && err == nil {
		err = ErrExpired // Redis had the lock until now, but the holder did not rely on it any more
	}
	switch {
	case err == nil:
		return nil
	case !held && !strings.HasSuffix(err.Error(), reason(l.why)): // once is enough
		return fmt.Errorf("locker: releasing %s: %w (%s)", excerpt.Of(key), err, reason(l.why))
	default:
		return fmt.Errorf("locker: releasing %s: %w", excerpt.Of(key), err)
	}
}

// stop ends the lease, which is not renewed any more. held reports whether the lock was held until now; if not, l.why
// says why. again reports whether an earlier call has ended the lease.
func (l *Lease) stop(cool bool) (token string, held, again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.state >= releasing {
		return "", false, true
	}
	held = l.state == holding && l.term.Held(now)
	if l.state == holding && !held {
		l.why = l.term.Overdue(now)
	}
	l.state = releasing
	if l.own {
		l.locks.CancelAlarm(&l.alarm)
	}
	if cool { // an extension that is under way would replace the cool-down
		_ = l.waitForExtension(context.Background()) // which does not end
	}
	return l.term.Token, held, false
}

// pass passes the lock on from token to the next caller in line, if a caller waits and the process may keep the lock.
// If that caller has left meanwhile, next is the token that has the lock in Redis.
func (l *Lease) pass(ctx context.Context, token string) (passed bool, next string, err error) {
	queue, ok := l.algorithm.(Queue)
	first, waits := l.locks.First(l.ticket.Key)
	now := time.Now()
	if !ok || !waits || l.quota.Over(now) {
		return false, token, nil
	}
	won := Won{Token: NewToken(BondIn(token), first.Label, now), Sent: now, Span: first.Options.Span}
	others, err := queue.Pass(ctx, l.ticket.Key, token, won.Token, won.Span)
	if err != nil {
		if !errors.Is(err, ErrLost) && !errors.Is(err, ErrExpired) { // either token may have the lock
			l.locks.Sweeper.Free(l.ticket.Options, true, l.algorithm, l.ticket.Key, won.Token, token)
		}
		return false, token, err
	}
	quota := l.quota
	quota.Others = others
	passed = l.locks.Next(l.ticket.Key, first.Label, Anyone, func(n *Lease) {
		l.mu.Lock()
		l.own = false
		l.mu.Unlock()
		n.mu.Lock()
		defer n.mu.Unlock()
		n.quota = quota
		n.begin(won)
	})
	return passed, won.Token, nil
}
