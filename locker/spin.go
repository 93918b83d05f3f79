package locker

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// Spin is the lock of Redis's own documentation of SET, for one Redis: SET key token NX PX lease, and released by
// a script that deletes the key only if it still holds the token.
//
// Callers of one process are served in the order in which they came. So are the processes that wait: each has
// its place in a queue in Redis, and is notified when its turn has come. If Redis does not permit that, a
// process tries again after a random pause.
//
// Another library may take the lock by SET with NX, too, as during a rolling migration. Its release notifies no process:
// a waiter notices it late, after a quarter of a second on average, since Options.Backoff does not apply to waiters that
// can be notified.
//
// To free a lock by hand, DEL its key: the holder learns of the loss at its next extension, and the processes that wait
// within half a second. The queue is in a second key, which expires by itself: it is the lock's key with .queue behind
// it, and the hash tag of the key if that has none of its own. If the lock's key has an opening brace, but no hash
// tag, the queue's key begins with a brace.
type Spin struct{ lock *lock }

// NewSpin returns a spin lock on the Redis of pool.
func NewSpin(pool *redis.Pool, o Options) *Spin {
	s := spinOn(runnerOn(pool, o.Timeout))
	return &Spin{on(pool, newLock(s.Spin, s.notifiers, o))}
}

// Lock acquires key by the rules of [Locker]. The lock is stored at key itself, without a prefix.
func (s *Spin) Lock(ctx context.Context, key string) (*Lease, error) { return s.lock.Lock(ctx, key) }

// SpinAlgorithm returns the algorithm of [Spin] on any client, for [New].
func SpinAlgorithm(c transport.Client) Algorithm {
	if c == nil {
		return missing{what: "the Client of SpinAlgorithm"}
	}
	return spinOn(scripting.NewRunner(c, DefaultTimeout))
}

// spin is the engine's spin lock, with its queue, and an [Algorithm], which has none.
type spin struct {
	lease.Spin
	notifiers *lease.Notifiers
}

func spinOn(r *scripting.Runner) spin {
	s := lease.Spin{Runner: r}
	return spin{s, lease.NewNotifiers(r, s.Quit)}
}

func (s spin) Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error) {
	found, err := s.Spin.Take(ctx, key, token, "", lease)
	return Attempt{Taken: found.Taken, Holder: found.Holder, Left: found.Left, Ambiguous: found.MaybeTaken}, err
}

// Valid returns lease: there is one Redis, whose clock ends it.
func (spin) Valid(lease time.Duration) time.Duration { return lease }
