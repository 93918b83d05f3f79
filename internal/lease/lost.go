package lease

import (
	"errors"
	"fmt"
	"strings"
)

// Why a lock was lost: for people who read logs, so nothing is decided by it. The errors wrap
// ErrLost, and no other error of this package.

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
// changed in internal/lua/record.lua.
var (
	errChanged = fmt.Errorf("%w: another has changed the session", ErrLost)
	ErrEnded   = fmt.Errorf("%w: another has ended the session", ErrLost)
	errGone    = fmt.Errorf("%w: the session's record is gone: deleted, evicted, or it ran out", ErrLost)
)

// reason is the text of err without that of ErrLost.
func reason(err error) string { return strings.TrimPrefix(err.Error(), ErrLost.Error()+": ") }
