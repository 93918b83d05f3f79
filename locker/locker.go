// Package locker is locks on Redis: one holder at a time in any number of
// processes, who learns at once when the lock is no longer theirs.
//
// # Which lock
//
//   - [Spin]: one Redis, the usual choice.
//   - [Timestamp]: the same, for sharing locks with programs that keep the time
//     of expiry in the key, taken by SETNX and GETSET.
//   - [Redlock]: several Redis servers, of which less than half may fail.
//
// All of them are a [Locker], take the same [Options], and give out a [Lease].
//
// # Design
//
// A lock is a key in Redis. What differs from one kind of lock to the next is
// an [Algorithm]: how to take, extend and release that key, one try each,
// nothing else. What they share is here once:
//
//   - line.go: callers of one process wait for one key in a queue, first come,
//     first served. Only the head of the queue talks to Redis, so a crowd costs
//     Redis one contender, and the waiters hold no connection.
//   - guard.go: from the call of Lock to the lease, or to the error.
//   - contest.go: the head's loop. Try, wait, try again, until the wait is over or
//     the context ends. sweep.go: what a try may have left behind is cleaned up.
//   - policy.go and backoff.go: for how long to wait between two tries.
//   - relay.go: a queue of processes in Redis, so that the lock goes from one to
//     the next. place.go: where a process stands in it. bell.go and subscription.go:
//     how it is told of its turn.
//   - lease.go: a lock that was won, and the ways to give it back.
//   - pass.go: the lock goes to the next caller of the same process instead, and
//     turn.go: for how long it may.
//   - watchdog.go: extends a lease while it is held, up to MaxHold. When it is lost,
//     the holder is told.
//   - owner.go: who holds it, for whoever waits.
//   - client.go: Redis itself, as two methods.
//
// # What is guaranteed, and what is not
//
// As long as Redis keeps its data, at most one token has the lock, and a lease is
// given out only while its token has. A lease's end is counted from before the
// command that took or extended it was sent, by the monotonic clock of this
// process, so a holder's idea of its lease never outlasts Redis's, as long as
// Redis's clock does not jump.
//
// A paused holder does not notice that its lease has run out until it runs
// again. So no lock of this kind makes a write safe by itself: what the lock
// guards has to compare what it had read, in the same step as the write. Package store
// does that. To compare the token is not enough: a take that is repeated after a broken
// connection may reach Redis twice, and give the lock to its token once more, long after
// that has given it back. The lock is shut for a lease then, and nobody holds it.
//
// Redis may lose the key: a failover to a replica that did not have it yet, an
// eviction, a FLUSHALL. Then two callers may hold the lock until the first one's
// watchdog notices, at most a third of the lease later.
//
// # What Redis must permit
//
// The commands get, set, del, pexpire, eval and evalsha; time for Timestamp. With
// pttl it is known when another's lease ends, which the policy LeaseEnd needs. With
// publish, subscribe and the channels latchkey:wake:* a process is told when its turn
// has come; without, it asks every few milliseconds, and with subscribe alone it also
// waits for nothing now and then, for up to half a second. With pubsub|numsub a process
// that has died is passed over also while somebody listens to all channels.
package locker

import (
	"context"
	"errors"
)

// The errors of this package, to be matched with [errors.Is].
var (
	// ErrTimeout: the lock was not free within Options.Wait.
	ErrTimeout = errors.New("lock is still held by another")
	// ErrTooManyWaiters: Options.MaxWaiters callers of this process wait for
	// the key already.
	ErrTooManyWaiters = errors.New("too many wait for this lock already")
	// ErrLost: the lease ran out or its key vanished, and another may hold the
	// lock by now.
	ErrLost = errors.New("lock was lost")
	// ErrExpired: the lease ran out, but nobody has taken the lock since.
	ErrExpired = errors.New("lock expired, and nobody took it")
	// ErrForeign: the key holds something that no lock of this kind has written.
	// It is left as it is.
	ErrForeign = errors.New("the lock's key belongs to something else")
	// ErrUnavailable: Redis could not be reached, did not answer in time, or
	// refused the command.
	ErrUnavailable = errors.New("redis is unavailable")
)

// A Locker gives out leases on keys. Its methods may be called at any time by
// any number of goroutines.
//
// Lock returns a lease once the caller is the only holder of key, and the caller
// must give it back with Unlock. It waits as long as the Locker's options say
// and ctx allows; where it fails, nothing stays locked. The error wraps
// [ErrTimeout], [ErrTooManyWaiters], [ErrUnavailable] or the cause of ctx's end.
//
// The lease does not end with ctx. It is not re-entrant: a holder that locks
// the same key again waits for itself.
type Locker interface {
	Lock(ctx context.Context, key string) (*Lease, error)
}
