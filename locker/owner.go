package locker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// An Owner is the holder of a lock, as the lock's key describes it. It is for people who look for a slow
// holder; no code depends on it.
type Owner struct {
	Host  string
	PID   int
	Label string    // see [WithLabel]
	Since time.Time // by the clock of Host
}

// String returns host/pid and the label, as in "web-3/4711 POST /cart".
func (o Owner) String() string { return lease.Owner(o).String() }

// A HeldError is the error of a caller that waited in vain, and knows the holder of the lock. Get it with [errors.As].
// After [Lease.UnlockAfter] the last holder counts as the holder until the lock is free.
type HeldError struct {
	Owner Owner
	// For is how long the owner had held the lock, by the clocks of the two hosts.
	For time.Duration
	// Left is how long the owner's lease still lasted or, after UnlockAfter, for how long the lock stays locked; 0 if
	// that is unknown. A living owner may extend its lease, or release the lock sooner.
	Left time.Duration
	// Err is ErrTimeout, ErrTooManyWaiters, or the cause of the end of the caller's context; nil means ErrTimeout.
	Err error
}

func init() {
	lease.HeldError = func(err error, o lease.Owner, had, left time.Duration) error {
		return &HeldError{Owner: Owner(o), For: had, Left: left, Err: err}
	}
}

// Error says who holds the lock, for how long already, and when the lease ends, if that is known.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("lock is held by %s for %v", e.Owner, e.For)
	if e.Left > 0 {
		text += fmt.Sprintf(", and its lease ends in %v", e.Left)
	}
	if e.Unwrap() != ErrTimeout {
		return fmt.Sprintf("%v: the %s", e.Err, text)
	}
	return text
}

// Unwrap returns Err, or [ErrTimeout].
func (e *HeldError) Unwrap() error { return cmp.Or(e.Err, ErrTimeout) }

type labelKey struct{}

// WithLabel returns a context that labels the locks that are acquired with it. The errors of callers that wait for
// such a lock contain the label. With an empty label Options.Label counts. The label is stored in Redis, so it must
// not be a secret. It is cut to 64 bytes, and characters that cannot be printed are replaced.
func WithLabel(ctx context.Context, label string) context.Context {
	return context.WithValue(ctx, labelKey{}, label)
}
