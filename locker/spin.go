package locker

import (
	"cmp"
	"context"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// Spin is the lock of Redis's own documentation of SET, for one Redis: SET key token NX PX
// lease, and released by a script that deletes the key only if it still holds the token.
//
// Callers of one process are served in the order they came. So are the processes that wait:
// each has its place in a queue in Redis, and is notified when its turn has come. Where Redis
// does not permit that, they try again after a jittered pause.
type Spin struct{ lock Locker }

// NewSpin returns a spin lock on the Redis of pool. What is wrong with o is the
// error of every Lock.
func NewSpin(pool *redis.Pool, o Options) *Spin {
	timeout := cmp.Or(o.Timeout, DefaultTimeout)
	return &Spin{New(spinOn(transport.NewRedigo(pool, timeout), timeout), o)}
}

// Lock takes key itself, by the rules of [Locker].
func (s *Spin) Lock(ctx context.Context, key string) (*Lease, error) { return s.lock.Lock(ctx, key) }

// SpinAlgorithm returns the algorithm of [Spin] on any client, for [New].
func SpinAlgorithm(c transport.Client) Algorithm { return spinOn(c, DefaultTimeout) }

func spinOn(c transport.Client, timeout time.Duration) Algorithm {
	runner := scripting.NewRunner(c, timeout)
	return ours{lease.Spin{Runner: runner}, lease.NewNotifiers(runner)}
}
