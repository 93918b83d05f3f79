package locker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
	"github.com/gomodule/redigo/redis"
)

// Redlock is a lock on several independent Redis servers, the nodes. The holder of the spin lock on more than
// half of the nodes has the lock. So the lock survives the loss of the others. The algorithm is the one in Redis's
// documentation of distributed locks:
//
//   - All nodes are asked at once, each for at most Options.Timeout.
//   - With a majority the lock is acquired. [Lease.Validity] is the lease, minus the time that the round trips
//     took, minus a hundredth of the lease and 2 ms for clocks that run at different speeds.
//   - Without a majority the lock is released on all nodes, even on those whose reply was no or was lost, and tried
//     again after a random pause.
//
// A node that has lost a lock does not get it again from the other nodes. So a rolling restart of the nodes loses each
// lock that lasts longer than the restart: before the next node restarts, wait until all locks that were held have been
// released.
//
// Nodes must not be replicas of each other. A node that restarts without its data has forgotten the holder:
// keep the node down for the time of a lease, or let it sync each write to disk.
//
// A node that is down or slow costs at most its timeout. It costs nothing if the others are a majority and all nodes
// have replied once to one Take, which shows that no two of them are the same database. Databases 0, 1 and 2 of one
// server look like three nodes, and are lost together: do not use them so.
type Redlock struct {
	lock    *lock
	nodes   []lease.Algorithm
	timeout time.Duration // of each

	// distinct: all nodes have said yes to one Take, so they are different servers. Until then a Take waits for
	// all of them.
	distinct atomic.Bool
}

// NewRedlock returns a lock on the Redis servers of pools, an odd number of them. The pools should have dial
// timeouts, or dial by DialContext.
func NewRedlock(pools []*redis.Pool, o Options) *Redlock {
	o = o.forRedlock()
	clients := make([]transport.Client, len(pools))
	for i, pool := range pools {
		if pool != nil {
			clients[i] = transport.NewRedigo(pool, o.Timeout)
		}
	}
	r := NewRedlockOn(clients, o)
	if r.lock.err == nil {
		r.refuse(checkDistinct(pools))
	}
	return r
}

// NewRedlockOn returns a lock on an odd number of Redis servers, over any clients. The caller must close the
// clients. A client should take no longer than Options.Timeout for a round trip; Redlock does not wait any
// longer.
func NewRedlockOn(clients []transport.Client, o Options) *Redlock {
	o = o.forRedlock()
	r := &Redlock{lock: newLock(nil, nil, o), timeout: o.Timeout}
	for _, c := range clients {
		r.nodes = append(r.nodes, lease.Spin{Runner: scripting.NewRunner(c, o.Timeout)})
	}
	r.refuse(cmp.Or(o.check(), checkTimes(o.held(), o.Timeout), checkNodes(clients)))
	return r
}

// refuse makes what is wrong with the arguments the error of every Lock.
func (r *Redlock) refuse(err error) {
	if err != nil {
		r.lock.err = fmt.Errorf("locker: Redlock: %w", err)
	}
}

// forRedlock returns the options with those defaults that only Redlock has.
func (o Options) forRedlock() Options {
	held := o.held()
	o.Timeout = cmp.Or(o.Timeout, max(min(max(held/50, 10*time.Millisecond), held/4), time.Millisecond))
	o.Backoff = cmp.Or(o.Backoff, Backoff{Min: 10 * time.Millisecond, Max: 200 * time.Millisecond})
	return o
}

// held returns the lease that one Take asks for.
func (o Options) held() time.Duration {
	held := cmp.Or(o.Lease, lease.DefaultLease)
	if o.MaxHold > 0 {
		held = min(held, o.MaxHold)
	}
	return held
}

func checkNodes(clients []transport.Client) error {
	switch n := len(clients); {
	case n == 0:
		return errors.New("no nodes: there must be an odd number of them")
	case n%2 == 0:
		return fmt.Errorf("%d nodes: it must be an odd number, since with %d no more may fail than with %d", n, n, n-1)
	}
	if i := slices.Index(clients, nil); i >= 0 {
		return fmt.Errorf("node %d is nil", i+1)
	}
	return nil
}

func checkDistinct(pools []*redis.Pool) error {
	for i, pool := range pools {
		if first := slices.Index(pools, pool); first < i {
			return fmt.Errorf("node %d: %w as node %d", i+1, errSameNode, first+1)
		}
	}
	return nil
}

// errSameNode: a node that is asked twice must not have two votes.
var errSameNode = errors.New("it is the same Redis")

// checkTimes checks the lease that one Take asks for, and how long a node may take.
func checkTimes(held, timeout time.Duration) error {
	switch {
	case held < 10*time.Millisecond:
		return fmt.Errorf("Options.Lease or MaxHold is %v: it must be at least 10ms, since a part of it is reserved for clocks that differ", held)
	case timeout > held/4:
		return fmt.Errorf("Options.Timeout is %v, and Lease or MaxHold %v: a node may take a quarter of it at most", timeout, held)
	}
	return nil
}

// Lock acquires key by the rules of [Locker]. The error wraps [ErrUnavailable] if half of the nodes or more do
// not reply.
func (r *Redlock) Lock(ctx context.Context, key string) (*Lease, error) {
	if r.lock == nil {
		return nil, errZero
	}
	return r.lock.lockBy(ctx, key, newRedlock(r))
}
