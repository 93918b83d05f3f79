package locker

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// A Lease is a lock that is held. Its methods may be called by any goroutine. Until it is given
// back, a timer renews it every third of Options.Lease, for as long as MaxHold allows; when MaxHold
// does not allow more, it only asks whether the lock is still held. Between two renewals no goroutine
// exists.
type Lease struct{ lease lease.Lease }

// Validity returns for how long the holder may rely on the lease if it is not
// extended any more: 0 once it was lost or given back.
func (l *Lease) Validity() time.Duration { return l.lease.Validity() }

// Lost returns a channel that is closed when the lease ends without having been
// given back: it could not be extended in time, was held longer than MaxHold,
// or its key was taken away. Another may hold the lock from then on.
func (l *Lease) Lost() <-chan struct{} { return l.lease.Lost() }

// OnLost calls cancel with an [ErrLost] that says why when the lease is lost, so that a context ends with it:
//
//	ctx, cancel := context.WithCancelCause(ctx)
//	defer cancel(nil)
//	lease.OnLost(cancel)
//
// cancel is called once, in a goroutine of its own, or by OnLost itself if the lease is
// lost already. It may call the lease's methods. If it panics in its goroutine, that is logged by
// slog.Default.
func (l *Lease) OnLost(cancel context.CancelCauseFunc) { l.lease.OnLost(cancel) }

// Extend makes the lease end d from now, beyond MaxHold if need be. It is renewed all the same: a
// d that is shorter than what that keeps anyway does not last. d is at least 1 ms. The error is
// [ErrExpired] where the lease had run out and nobody took the lock, [ErrLost] where another did,
// and [ErrUnavailable] where Redis did not say; the lease goes on then, for as long as it lasts.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	return l.lease.Extend(ctx, d)
}

// Unlock gives the lock back. The error is [ErrExpired] where the lease had run out and nobody
// took the lock, [ErrLost] where another did: another holder may then have worked at the same
// time. Both may be spurious after a broken connection: the release is repeated then, and finds
// the lock gone. With [ErrUnavailable] the lock stays shut until its lease ends.
//
// A lock is given back even if ctx has ended: only Options.Timeout bounds it.
// A second Unlock does nothing and returns nil, so it can be deferred.
func (l *Lease) Unlock(ctx context.Context) error { return l.lease.Unlock(ctx) }

// UnlockAfter gives the lock back, but leaves it shut for delay more: a cool-down, for what must
// not be done again too soon. Otherwise it is like Unlock.
func (l *Lease) UnlockAfter(ctx context.Context, delay time.Duration) error {
	return l.lease.UnlockAfter(ctx, delay)
}
