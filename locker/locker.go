// Package locker implements distributed locks on Redis. A lock has one holder at a time, in any number of
// processes. A holder that has lost the lock is told so: at its next extension at the latest.
//
//	jobs := locker.NewSpin(pool, locker.Options{Wait: locker.NoWait})
//	lease, err := jobs.Lock(ctx, "job:report")
//	if err != nil {
//		return err // locker.ErrTimeout: another holder has the lock
//	}
//	defer lease.Unlock(ctx)
//
// # Which lock
//
//   - [Spin]: one Redis, the usual choice.
//   - [Timestamp]: one Redis, for sharing locks with programs that keep the time of expiry in the key, by SETNX
//     and GETSET.
//   - [Redlock]: several Redis servers, of which fewer than half may fail.
//   - [New]: your own [Algorithm], or another Redis client.
//
// All of them take the same [Options] and return a [Lease], which is extended while it is held. The callers of
// one process wait in line, and only the first caller talks to Redis. With Spin the processes that wait have a
// queue in Redis, and each is notified when its turn has come.
//
// A constructor does not connect, and never fails: if its arguments are wrong, every Lock returns that error.
//
// Make one Locker for the program, and not one for each lock. Each Locker has its own connections, and the callers of
// two Lockers do not wait in one line. NewSpin, NewTimestamp and NewRedlock use a pool only to dial: its MaxActive,
// TestOnBorrow, Close and Stats have no effect on them.
//
// Sessions need none of this: package store has a lock for each session. Package locker is for other work of the
// same program, such as jobs and imports.
//
// # What is guaranteed, and what is not
//
// As long as Redis keeps its data, at most one token has the lock, and a Lease is valid only while its token
// has the lock. A Lease counts its time from before the command was sent that acquired or extended it, by the
// monotonic clock of this process. So it never outlasts the lock in Redis, as long as Redis's clock does not
// jump.
//
// A paused holder does not notice that its lease has expired until it runs again. So no lock of this kind makes a
// write safe by itself, and a Lease has no fencing token, that is, a number that grows with each holder: in the same
// step as the write, the data must be compared with what the writer has read. Package store does that. It is not
// enough to compare the token: a take that is repeated after a broken connection may reach Redis twice, and give the
// lock to its token once more, long after the token has released the lock. Then the lock is locked for a lease,
// without a holder.
//
// Redis may lose the key: by a failover to a replica that does not have the key yet, an eviction, or a
// FLUSHALL. Then two callers may hold the lock, until the first holder extends its lease: for a third of a lease
// at most, or for the time that the first holder has asked for by Extend.
//
// # What Redis must permit
//
// The commands get, set, del, pexpire, eval and evalsha; for Timestamp also time. With pttl it is known when
// another holder's lease ends, which the policy LeaseEnd needs. With publish, subscribe and the channels
// latchkey:wake:* a process is notified when its turn has come. Without them it asks every few milliseconds;
// with subscribe alone it sometimes also waits in vain, for up to half a second. With pubsub|numsub a process
// that has died is passed over even while another client listens to all channels.
package locker

// Kinds of locks differ in their algorithm: how to take, extend and release a key, one try each. They share the
// engine, internal/lease. It has the algorithm of the spin lock, which sessions use, too. redlock.go is the
// lock on several servers; its algorithm is redlock_algorithm.go, and quorum.go counts the servers' votes.

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
	// ErrLost: the lease expired or its key vanished, and another holder may have the lock by now. The error's
	// text tells the reason if it is known.
	ErrLost = lease.ErrLost
	// ErrExpired: the lease expired or its key vanished, and no other holder has the lock now. Another holder may have
	// had the lock meanwhile, and have released it. Or the lease was released, and cannot be extended.
	ErrExpired = lease.ErrExpired
	// ErrForeign: the key holds a value that no lock of this kind has written. The value is left as it is.
	ErrForeign = lease.ErrForeign
	// ErrUnavailable: Redis could not be reached, did not reply in time, or refused the command. Lock does not wait
	// until Redis is back: the caller decides whether to try again.
	ErrUnavailable = lease.ErrUnavailable
)

// A Locker returns leases on keys. Any number of goroutines may call its methods at any time.
//
// Lock returns a Lease once the caller is the only holder of key. The caller must release it by Unlock. Lock
// waits as long as the Locker's options and ctx allow. If it fails, nothing stays locked. The error wraps
// [ErrTimeout], [ErrTooManyWaiters], [ErrUnavailable] or the cause of ctx's end, and perhaps also [ErrForeign]. With
// wrong arguments, such as an empty key, it wraps none of them.
//
// A round trip ends at ctx's deadline, but is not broken off when ctx is cancelled. Lock then returns when Redis has
// replied, or when Options.Timeout and perhaps a quarter of it have passed.
//
// The lease does not end with ctx. It is not re-entrant: a holder that locks the same key again waits for itself.
type Locker interface {
	Lock(ctx context.Context, key string) (*Lease, error)
}
