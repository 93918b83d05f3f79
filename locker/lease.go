package locker

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// A Lease is a lock that is held. Any goroutine may call its methods. Until it is released, a timer extends it every
// third of Options.Lease, for as long as MaxHold allows; after that it only asks whether the lock is still held.
// Between two extensions the Lease has no goroutine.
type Lease struct{ lease lease.Lease }

// Validity returns for how long the holder may rely on the lease if it is not extended: 0 if it was lost or
// released.
func (l *Lease) Validity() time.Duration { return l.lease.Validity() }

// Lost returns a channel that is closed when the lease ends without having been released: it could not be extended in
// time, was held longer than MaxHold, or its key was taken away. From then on another may hold the lock. After Unlock
// the channel is never closed.
func (l *Lease) Lost() <-chan struct{} { return l.lease.Lost() }

// OnLost calls cancel with an [ErrLost] that says why when the lease is lost, so that a context ends with it:
//
//	ctx, cancel := context.WithCancelCause(ctx)
//	defer cancel(nil)
//	lease.OnLost(cancel)
//
// After Unlock cancel is never called. Otherwise cancel is called once, in a new goroutine, or by OnLost itself if
// the lease is lost already. It may call the lease's methods. If cancel is nil, OnLost does nothing. If it panics in
// the new goroutine, slog.Default logs the panic.
func (l *Lease) OnLost(cancel context.CancelCauseFunc) { l.lease.OnLost(cancel) }

// Extend makes the lease last for d from now at least, even beyond MaxHold. It never shortens the lease: if d is less
// than what is left, Extend only asks Redis whether the lock is still held. The timer extends the lease as before. d must be
// at least 1 ms. The error is [ErrExpired] if the lease had expired and no other holder has the lock, and [ErrLost] if
// another holder has it. After Unlock it is an ErrExpired, too, whoever has the lock. If the outcome is unknown, the
// error is [ErrUnavailable], and the lease goes on for as long as it lasts. If ctx has ended, the error of a
// lease that is held is also an ErrUnavailable, and nothing is sent to Redis.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	return l.lease.Extend(ctx, d)
}

// Unlock releases the lock. The error is [ErrExpired] if the lease had expired and no other holder has the lock, and
// [ErrLost] if another holder has it. After either error another holder may have worked at the same time: after an
// ErrExpired it has released the lock since. Both may be wrong after a broken connection, since the release is repeated
// then, and may find that the first try has released the lock. With [ErrUnavailable] the lock may stay locked until its
// lease ends. After an UnlockAfter it is then unknown whether there is a cool-down.
//
// A lock is released even if ctx has ended: only Options.Timeout bounds that. Unlock and UnlockAfter end the lease,
// also if they fail, so Unlock can be deferred. A further call does nothing, and returns what the first call has
// returned: to repeat a release that failed has no effect.
func (l *Lease) Unlock(ctx context.Context) error { return l.lease.Unlock(ctx) }

// UnlockAfter is like Unlock, but the lock stays locked for delay: a cool-down, for work that must not be repeated too
// soon. If the network makes a copy of the command that comes late, the lock stays locked for up to twice as long. If an
// extension reaches Redis after UnlockAfter, the lock stays locked for a lease from then on, unless delay lasts longer.
// After an error there may be no cool-down. A negative delay is an error, and the lease goes on.
func (l *Lease) UnlockAfter(ctx context.Context, delay time.Duration) error {
	return l.lease.UnlockAfter(ctx, delay)
}
