package locker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Redlock is a lock on several independent Redis servers, the nodes. Whoever has
// the spin lock on more than half of them has the lock, so it survives the loss
// of the others. The algorithm is the one of Redis's documentation of distributed
// locks:
//
//   - All nodes are asked at once, each for at most Options.Timeout.
//   - With a majority the lock is won, for the lease, less the time it took, less
//     a hundredth of the lease and 2 ms for clocks that run differently:
//     [Lease.Validity].
//   - Without, it is released on all of them, also where the answer was no or was
//     lost, and tried again after a random pause.
//
// Nodes must not be replicas of each other. A node that restarts without its data
// has forgotten who it said yes to: keep it away for the time of a lease, or have
// it sync each write to its disk.
//
// One process has one connection pool for each node; a node that is down or slow
// costs at most its time-out, and nothing where the others are a majority.
type Redlock struct {
	guard   Guard
	nodes   []Algorithm
	options Options
	err     error // what is wrong with the arguments

	// distinct is set once all nodes have answered one Take, and none was met
	// twice. Until then a Take waits for all of them.
	distinct atomic.Bool
}

// NewRedlock returns a lock on the Redis servers of pools, an odd number of them.
// Let the pools dial by DialContext, or set their dial time-outs. What is wrong
// with the arguments is the error of every Lock.
func NewRedlock(pools []*redis.Pool, o Options) *Redlock {
	lease := min(orElse(o.Lease, DefaultLease), orElse(o.MaxHold, forever))
	o.Timeout = orElse(o.Timeout, min(max(lease/50, 10*time.Millisecond), lease/4))
	o.Backoff = orElse(o.Backoff, Backoff{Min: 10 * time.Millisecond, Max: 200 * time.Millisecond})
	r := &Redlock{}
	if r.options, r.err = o.withDefaults(); r.err == nil {
		r.err = r.options.checkRedlock()
	}
	if r.err == nil {
		r.err = checkPools(pools)
	}
	for _, pool := range pools {
		r.nodes = append(r.nodes, SpinAlgorithm(NewClient(pool, o.Timeout)))
	}
	return r
}

func checkPools(pools []*redis.Pool) error {
	if len(pools)%2 == 0 {
		return fmt.Errorf("%d nodes: it must be an odd number, since an even one survives no more losses than one less", len(pools))
	}
	for i, pool := range pools {
		if pool == nil {
			return fmt.Errorf("the pool of node %d is nil", i+1)
		}
		if first := slices.Index(pools, pool); first < i {
			return fmt.Errorf("node %d: %w as node %d", i+1, errSameNode, first+1)
		}
	}
	return nil
}

// errSameNode: who is asked twice must not have two votes.
var errSameNode = errors.New("it is the same Redis")

func (o Options) checkRedlock() error {
	switch lease := min(o.Lease, o.MaxHold); {
	case lease < 10*time.Millisecond:
		return fmt.Errorf("Options.Lease or MaxHold is %v: it must be at least 10ms, of which the clocks take some", lease)
	case o.Timeout > lease/4:
		return fmt.Errorf("Options.Timeout is %v, and Lease or MaxHold %v: a node may take a quarter of it at most", o.Timeout, lease)
	}
	return nil
}

// Lock takes key by the rules of [Locker]. The error wraps [ErrUnavailable] where
// half of the nodes or more do not answer.
func (r *Redlock) Lock(ctx context.Context, key string) (*Lease, error) {
	if r.err != nil {
		return nil, fmt.Errorf("locker: Redlock: %w", r.err)
	}
	return r.guard.Lock(ctx, key, &redlock{Redlock: r, turn: make([]sync.Mutex, len(r.nodes))}, r.options)
}

// redlock is the algorithm, for one lease.
type redlock struct {
	*Redlock
	// Each node is told one thing after another. So a release never overtakes
	// the take that it is to undo.
	turn []sync.Mutex
}

func (r *redlock) Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error) {
	t := r.ask(ctx, func(ctx context.Context, node int) (Attempt, error) {
		found, err := r.nodes[node].Take(ctx, key, nodeToken(node, token), lease)
		if number, holder, ok := strings.Cut(found.Holder, ":"); ok {
			found.Holder = holder
			if holder == token {
				err = fmt.Errorf("%w as node %s", errSameNode, number)
			}
		}
		return found, err
	}, func(t *tally) bool { return t.decided() && r.distinct.Load() })
	if t.yes+t.no == t.nodes {
		r.distinct.Store(true)
	}
	found, err := t.attempt()
	if errors.Is(t.errs, errSameNode) {
		found, err = Attempt{}, t.errs
	}
	if !found.Taken {
		// Those that did not answer the take will hardly answer this.
		u := r.ask(context.WithoutCancel(ctx), r.release(key, token, 0), func(u *tally) bool {
			return u.heard() >= t.nodes-t.failed
		})
		found.Doubt = t.doubt || u.failed > t.failed
	}
	return found, err
}

func (r *redlock) Extend(ctx context.Context, key, token string, d time.Duration) error {
	return r.ask(ctx, func(ctx context.Context, node int) (Attempt, error) {
		return Attempt{Taken: true}, r.nodes[node].Extend(ctx, key, nodeToken(node, token), d)
	}, (*tally).decided).verdict()
}

func (r *redlock) Release(ctx context.Context, key, token string, after time.Duration) error {
	return r.ask(ctx, r.release(key, token, after), (*tally).decided).verdict()
}

func (r *redlock) release(key, token string, after time.Duration) question {
	return func(ctx context.Context, node int) (Attempt, error) {
		return Attempt{Taken: true}, r.nodes[node].Release(ctx, key, nodeToken(node, token), after)
	}
}

// Valid takes off what the nodes' clocks and this process's may differ in the
// time of a lease.
func (*redlock) Valid(lease time.Duration) time.Duration {
	return lease - lease/100 - 2*time.Millisecond
}

// A question is put to one node, counted from 0.
type question func(ctx context.Context, node int) (Attempt, error)

var errSilent = errors.New("it did not answer in time")

// ask puts a question to all nodes at once, and counts their answers until it has
// heard enough, or the time for all of them is over. Those that come later are
// not counted, but each question ends by its own time-out.
func (r *redlock) ask(ctx context.Context, q question, enough func(*tally) bool) *tally {
	type answer struct {
		node  int
		found Attempt
		err   error
	}
	answers := make(chan answer, len(r.nodes)) // room for all, so that none waits to be heard
	for node := range r.nodes {
		go func() {
			r.turn[node].Lock()
			defer r.turn[node].Unlock()
			found, err := q(ctx, node)
			answers <- answer{node, found, err}
		}()
	}
	timer := time.NewTimer(r.options.Timeout)
	defer timer.Stop()
	t := &tally{nodes: len(r.nodes)}
	for t.heard() < t.nodes && !enough(t) {
		select {
		case a := <-answers:
			t.add(a.node+1, a.found, a.err)
		case <-timer.C:
			for t.heard() < t.nodes {
				t.fail(&evalError{err: errSilent, maybe: true}, true)
			}
		}
	}
	return t
}

// A node's token begins with its number, so that a node that is asked twice, by
// two addresses, is found out: it holds the token under another number.
func nodeToken(node int, token string) string { return strconv.Itoa(node+1) + ":" + token }
