package locker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// An Owner is who holds a lock, according to its key. It is for people who look for a slow holder; nothing is
// decided by it.
type Owner struct {
	Host  string
	PID   int
	Label string    // see [WithLabel]
	Since time.Time // by the clock of Host
}

// String returns host/pid and the label, as in "web-3/4711 POST /cart".
func (o Owner) String() string { return lease.Owner(o).String() }

// A HeldError is an [ErrTimeout] or [ErrTooManyWaiters] that knows who had the lock: get it with [errors.As].
type HeldError struct {
	Owner Owner
	// For is how long the owner had held the lock, by the clocks of the two hosts.
	For time.Duration
	// Err is one of the two; nil: ErrTimeout.
	Err error
}

func init() {
	lease.HeldError = func(err error, o lease.Owner, d time.Duration) error { return &HeldError{Owner(o), d, err} }
}

func (e *HeldError) Error() string {
	if errors.Is(e.Err, ErrTooManyWaiters) {
		return fmt.Sprintf("%v: it is held by %s for %v", e.Err, e.Owner, e.For)
	}
	return fmt.Sprintf("lock is held by %s for %v", e.Owner, e.For)
}

// Unwrap returns Err, or [ErrTimeout].
func (e *HeldError) Unwrap() error { return cmp.Or(e.Err, ErrTimeout) }

type labelKey struct{}

// WithLabel returns a context whose locks say what they are for, to callers that wait for them. The label is
// stored in Redis, so it must not be a secret. It is cut to 64 bytes, and what cannot be printed is replaced.
func WithLabel(ctx context.Context, label string) context.Context {
	return context.WithValue(ctx, labelKey{}, label)
}
