package lease

import (
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
)

// A Holder is the last known holder of a lock. The zero value means that none is known.
type Holder struct {
	Token string
	Lease *Lease // if this process holds it

	granted time.Time // when the lock was granted to a ticket of this process, whose token is not known; or zero
	label   string    // of that ticket
	ends    time.Time // when the lease ends, if another process holds it
}

// left returns how long the holder's lease still lasts; if that is unknown, it is not more than 0. It must not be called
// with Lines.mu held, since it locks the owner's mutex.
func (h Holder) left() time.Duration {
	if h.Lease != nil {
		return h.Lease.Validity()
	}
	return time.Until(h.ends)
}

// held returns err, the error of a caller that has not acquired the lock, with what is known of the holder h. It must
// not be called with Lines.mu held.
func held(err error, h Holder) error {
	owner, ours := h.Owner()
	switch {
	case h.Token != "" && !ours:
		return fmt.Errorf("%w: %w", err, ErrForeign)
	case !ours:
		return err
	}
	// The holder's clock may be a little ahead of ours.
	had := max(0, time.Since(owner.Since)).Round(time.Millisecond)
	return HeldError(err, owner, had, max(0, h.left()).Round(time.Millisecond))
}

// Owner returns what is known of the holder. It returns false if nothing is known, or another program has taken the lock.
func (h Holder) Owner() (Owner, bool) {
	switch {
	case h == Holder{}:
		return Owner{}, false
	case h.granted.IsZero():
		return ParseToken(h.Token)
	}
	owner := ThisProcess()
	owner.Label, owner.Since = excerpt.Label(h.label), h.granted
	return owner, true
}

// HeldError adds the owner of a lock to err: an ErrTimeout, an ErrTooManyWaiters, or why a caller's context has ended.
// It also adds for how long the owner has had the lock, and how long the lease still lasts, or 0 if that is unknown.
// Package locker sets it: the error is a locker.HeldError.
var HeldError = func(err error, _ Owner, had, left time.Duration) error { return err }
