// Package locker implements distributed locks on Redis: one holder at a time in any
// number of processes, which learns at once when it has lost the lock.
//
//	jobs := locker.NewSpin(pool, locker.Options{Wait: locker.NoWait})
//	lease, err := jobs.Lock(ctx, "job:report")
//	if err != nil {
//		return err // locker.ErrTimeout: another has the lock
//	}
//	defer lease.Unlock(ctx)
//
// # Which lock
//
//   - [Spin]: one Redis, the usual choice.
//   - [Timestamp]: one Redis, for sharing locks with programs that keep the time of expiry in the key, by SETNX
//     and GETSET.
//   - [Redlock]: several Redis servers, of which less than half may fail.
//   - [New]: your own [Algorithm], or another Redis client.
//
// All take the same [Options] and return a [Lease], which is renewed while it is held. The callers of one process
// wait in line, and only the first of them talks to Redis. With Spin the processes that wait are a queue in
// Redis, and are notified when their turn has come.
//
// A constructor does not connect, and never fails: if its arguments are wrong, every Lock returns that error.
//
// # What is guaranteed, and what is not
//
// As long as Redis keeps its data, at most one token has the lock, and there is a lease only while its token has
// the lock. A lease's end is counted from before the command that took or extended it was sent, by the monotonic
// clock of this process. So a holder's idea of its lease never outlasts Redis's, as long as Redis's clock does not
// jump.
//
// A paused holder does not notice that its lease has expired until it runs again. So no lock of this kind makes a
// write safe by itself: what the lock guards must compare what it had read, in the same step as the write. Package
// store does that. To compare the token is not enough: a take that is repeated after a broken connection may reach
// Redis twice, and give the lock to its token once more, long after the token has released it. Then the lock is
// locked for a lease, and nobody holds it.
//
// Redis may lose the key: by a failover to a replica that does not have it yet, an eviction, a FLUSHALL. Then two
// may hold the lock until the first one's renewal, a third of a lease at most, or for as long as it has asked for
// by Extend.
//
// # What Redis must permit
//
// The commands get, set, del, pexpire, eval and evalsha; time for Timestamp. With pttl it is known when another's
// lease ends, which the policy LeaseEnd needs. With publish, subscribe and the channels latchkey:wake:* a process
// is notified when its turn has come; without them it asks every few milliseconds, and with subscribe alone it
// also waits for nothing now and then, for up to half a second. With pubsub|numsub a process that has died is
// passed over also while somebody listens to all channels.
package locker

// Kinds of locks differ in their algorithm: how to take, extend and release a key, one try each. What they share
// is the engine, internal/lease, with the algorithm of the spin lock, which package store uses, too. redlock.go is
// the lock on several servers; its algorithm is redlock_algorithm.go, and quorum.go counts the servers' votes.

import (
	"context"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// The errors of this package, to be matched with [errors.Is].
var (
	// ErrTimeout: the lock was not free within Options.Wait.
	ErrTimeout = lease.ErrTimeout
	// ErrTooManyWaiters: Options.MaxWaiters callers of this process wait for the key already.
	ErrTooManyWaiters = lease.ErrTooManyWaiters
	// ErrLost: the lease expired or its key vanished, and another may hold the lock by now. The error's text
	// says why, if that is known.
	ErrLost = lease.ErrLost
	// ErrExpired: the lease expired, but nobody has taken the lock since.
	ErrExpired = lease.ErrExpired
	// ErrForeign: the key holds something that no lock of this kind has written. It is left as it is.
	ErrForeign = lease.ErrForeign
	// ErrUnavailable: Redis could not be reached, did not answer in time, or refused the command.
	ErrUnavailable = lease.ErrUnavailable
)

// A Locker returns leases on keys. Any number of goroutines may call its methods at any time.
//
// Lock returns a lease once the caller is the only holder of key; the caller must release it by Unlock. Lock waits
// as long as the Locker's options and ctx allow; if it fails, nothing stays locked. The error wraps [ErrTimeout],
// [ErrTooManyWaiters], [ErrUnavailable] or the cause of ctx's end.
//
// The lease does not end with ctx. It is not re-entrant: a holder that locks the same key again waits for itself.
type Locker interface {
	Lock(ctx context.Context, key string) (*Lease, error)
}
