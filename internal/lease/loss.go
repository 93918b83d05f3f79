package lease

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Why a lock was lost: for people who read logs, so nothing is decided by it. The errors wrap
// ErrLost, and no other error of this package.

// trouble is what went wrong with a lease; nil: nothing has.
type trouble struct {
	since time.Time // no extension has succeeded since then
	err   error     // of the last one; of a lease that was lost, why
}

// troubled notes that an extension has failed. It is called with mu held.
func (l *Lease) troubled(sent time.Time, err error) {
	if l.trouble == nil {
		l.trouble = &trouble{since: sent}
	}
	l.trouble.err = err
}

// overdue returns why the lease has ended, if nobody took it away. It is called with mu held.
func (l *Lease) overdue(now time.Time) error {
	switch {
	case !l.end.Before(l.extensible()):
		return fmt.Errorf("%w: it was held for longer than MaxHold, which is %v", ErrLost, l.options.MaxHold)
	case l.trouble != nil:
		return fmt.Errorf("%w: its lease ran out, since no try to extend it has succeeded for %v: %v",
			ErrLost, now.Sub(l.trouble.since).Round(time.Millisecond), l.trouble.err)
	default:
		return fmt.Errorf("%w: its lease ran out %v ago, and this process has not tried to extend it: was it paused?",
			ErrLost, now.Sub(l.end).Round(time.Millisecond))
	}
}

// Why returns why a lease was lost, as an ErrLost.
func (l *Lease) Why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why()
}

// why is called with mu held.
func (l *Lease) why() error {
	if l.trouble == nil {
		return ErrLost
	}
	return l.trouble.err
}

// Lost returns why a lock is lost after a round trip with this outcome.
func Lost(err error) error {
	switch {
	case err == nil, err == ErrLost:
		return err
	case errors.Is(err, ErrExpired):
		return fmt.Errorf("%w: its key is gone: deleted, evicted, or forgotten in a failover", ErrLost)
	case !errors.Is(err, ErrLost), errors.Is(err, ErrUnavailable):
		return fmt.Errorf("%w: %s", ErrLost, reason(err))
	}
	return err
}

// lostTo returns why a lock is lost whose key has another value now.
func lostTo(value string) error {
	owner, ours := ParseToken(value)
	switch {
	case isPlace(value):
		return fmt.Errorf("%w: it is the turn of another process", ErrLost)
	case !ours:
		return fmt.Errorf("%w: its key has been overwritten", ErrLost)
	}
	return fmt.Errorf("%w: %s has it now", ErrLost, owner)
}

// The record next to the lock is not the one that its holder has read or written; see
// changed in package store's record.lua.
var (
	errChanged = fmt.Errorf("%w: another has changed the session", ErrLost)
	ErrEnded   = fmt.Errorf("%w: another has ended the session", ErrLost)
	errGone    = fmt.Errorf("%w: the session's record is gone: deleted, evicted, or it ran out", ErrLost)
)

// reason is the text of err without that of ErrLost.
func reason(err error) string { return strings.TrimPrefix(err.Error(), ErrLost.Error()+": ") }
