package locker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// redlock is the algorithm of a [Redlock], for one lease.
//
// Each Take writes a different token, which contains the number of the try. With the same token, a release that
// was sent after a failed try, and is still on its way to a slow node, could undo the next try, which relies on
// that node's yes.
type redlock struct {
	lock *Redlock
	last try
	// strays has, for each node, the tries whose tokens the node may still have or get. The engine's sweep
	// knows only one token. Only the questions to a node use its strays, one question at a time.
	strays [][]try

	// Each node gets its questions one after another, in the order of the calls of ask. So a release does not
	// overtake the take that it undoes.
	mu    sync.Mutex      // guards the slice
	asked []chan struct{} // of each node: closed when its last question is done
}

// A try is one Take.
type try struct {
	number int
	token  string
	end    time.Time // of the lease it asked for
}

func newRedlock(r *Redlock) *redlock {
	n := len(r.nodes)
	return &redlock{lock: r, strays: make([][]try, n), asked: make([]chan struct{}, n)}
}

func (r *redlock) Take(ctx context.Context, key, token, _ string, span time.Duration) (lease.Attempt, error) {
	this := try{r.last.number + 1, token, time.Now().Add(span)}
	r.last = this
	t := r.ask(ctx, func(sure context.Context, node int) (lease.Attempt, error) {
		if err := ctx.Err(); err != nil {
			return lease.Attempt{}, fmt.Errorf("%w: %w: %w", ErrUnavailable, transport.ErrRefused, err) // it was never sent
		}
		found, err := r.lock.nodes[node].Take(sure, key, this.on(node), "", span)
		other, holder := cutNode(found.Holder)
		found.Holder = holder
		switch {
		case scripting.MaybeDone(err):
			r.stray(node, this)
		case holder == token && other != node:
			err = fmt.Errorf("%w as node %d", errSameNode, other+1)
		case holder == token: // in an earlier try
			found = lease.Attempt{}
		}
		return found, err
	}, func(t *tally) bool { return t.most(yes) && r.lock.distinct.Load() })
	if t.count(yes) == len(r.lock.nodes) {
		r.lock.distinct.Store(true)
	}
	found, err := t.attempt()
	if !found.Taken {
		// All nodes are asked to release it. Take waits for the nodes that have given it.
		released := r.ask(ctx, r.release(key, 0), func(released *tally) bool {
			return t.undone(released, silent) == 0
		})
		found.MaybeTaken = t.ambiguous || t.undone(released, failed) > 0
	}
	return found, err
}

func (r *redlock) Extend(ctx context.Context, key, _ string, d time.Duration) error {
	last := r.last // a node may get its turn when the next Take has begun
	return r.ask(ctx, func(ctx context.Context, node int) (lease.Attempt, error) {
		return lease.Attempt{Taken: true}, r.lock.nodes[node].Extend(ctx, key, last.on(node), d)
	}, (*tally).decided).verdict()
}

func (r *redlock) Release(ctx context.Context, key, _ string, after time.Duration) error {
	return r.ask(ctx, r.release(key, after), (*tally).decided).verdict()
}

// release releases what the last try has acquired, and what earlier tries may have left.
func (r *redlock) release(key string, after time.Duration) question {
	last := r.last
	return func(ctx context.Context, node int) (lease.Attempt, error) {
		err := r.lock.nodes[node].Release(ctx, key, last.on(node), after)
		for _, old := range r.strays[node] {
			if old != last && !errors.Is(err, ErrUnavailable) {
				_ = r.lock.nodes[node].Release(ctx, key, old.on(node), 0)
			}
		}
		if scripting.MaybeDone(err) {
			r.stray(node, last)
		}
		return lease.Attempt{Taken: true}, err
	}
}

// stray notes a try for a node, and forgets tries whose leases have expired.
func (r *redlock) stray(node int, t try) {
	over := func(old try) bool { return old == t || time.Now().After(old.end) }
	r.strays[node] = append(slices.DeleteFunc(r.strays[node], over), t)
}

// Valid subtracts by how much the clocks of the nodes and of this process may differ during a lease.
func (*redlock) Valid(lease time.Duration) time.Duration {
	return lease - lease/100 - 2*time.Millisecond
}

// on returns the try's token for a node. It begins with the node's number. So a server that is asked twice, by
// two addresses, is detected: it has the token with another number.
func (t try) on(node int) string { return fmt.Sprintf("%d.%d:%s", node+1, t.number, t.token) }

// cutNode splits such a token into the node and the try's token. It returns any other string unchanged.
func cutNode(s string) (node int, token string) {
	number, token, _ := strings.Cut(s, ":")
	first, _, _ := strings.Cut(number, ".")
	node, err := strconv.Atoi(first)
	if err != nil {
		return 0, s
	}
	return node - 1, token
}

// A question is sent to one node, counted from 0. Its ctx does not end with that of ask: the node must get the
// question even if no caller waits for the reply.
type question func(ctx context.Context, node int) (lease.Attempt, error)

// errSilent reads like the timeout of the node's connection.
var errSilent = fmt.Errorf("%w: %w", ErrUnavailable, os.ErrDeadlineExceeded)

// ask sends a question to all nodes at once, and counts the replies until they are enough, or the nodes' time
// has passed. Later replies are not counted.
func (r *redlock) ask(ctx context.Context, q question, enough func(*tally) bool) *tally {
	type answer struct {
		node  int
		found lease.Attempt
		err   error
	}
	answers := make(chan answer, len(r.asked)) // room for all, so that no goroutine waits
	r.mu.Lock()
	for node, before := range r.asked {
		done := make(chan struct{})
		r.asked[node] = done
		go func() {
			defer close(done)
			if before != nil {
				<-before
			}
			found, err := q(context.WithoutCancel(ctx), node)
			answers <- answer{node, found, err}
		}()
	}
	r.mu.Unlock()

	limit := r.lock.timeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	t := newTally(len(r.asked))
	for !t.complete() && !enough(t) {
		select {
		case a := <-answers:
			t.add(a.node, a.found, a.err)
		case <-timer.C:
			t.addSilent()
		}
	}
	return t
}
