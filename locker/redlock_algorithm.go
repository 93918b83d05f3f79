package locker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// redlock is the algorithm of a [Redlock], for one lease.
//
// Each Take writes a token of its own, with the number of the try in it. With the
// same one, a release that was sent after a failed try, and is still on its way
// to a slow node, could undo the next one, which believes in that node's yes.
type redlock struct {
	*Redlock
	*panel
	last try
	// strays are tries whose tokens each node may still have or get. Only
	// questions to that node look at them, one at a time.
	strays [][]try
}

// A try is one Take.
type try struct {
	number int
	token  string
	end    time.Time // of the lease it asked for
}

func newRedlock(r *Redlock) *redlock {
	n := len(r.nodes)
	return &redlock{Redlock: r, panel: newPanel(n, r.options.Timeout), strays: make([][]try, n)}
}

func (r *redlock) Take(ctx context.Context, key, token string, lease time.Duration) (Attempt, error) {
	this := try{r.last.number + 1, token, time.Now().Add(lease)}
	r.last = this
	t := r.ask(ctx, func(sure context.Context, node int) (Attempt, error) {
		if err := ctx.Err(); err != nil {
			return Attempt{}, &evalError{err: err} // it was never sent
		}
		found, err := r.nodes[node].Take(sure, key, this.on(node), lease)
		other, holder := cutNode(found.Holder)
		found.Holder = holder
		switch {
		case mayHaveHappened(err):
			r.stray(node, this)
		case holder == token && other != node:
			err = fmt.Errorf("%w as node %d", errSameNode, other+1)
		case holder == token: // in an earlier try
			found = Attempt{}
		}
		return found, err
	}, func(t *tally) bool { return t.most(yes) && r.distinct.Load() })
	if t.count(yes) == len(r.nodes) {
		r.distinct.Store(true)
	}
	found, err := t.attempt()
	if errors.Is(t.errs, errSameNode) {
		found, err = Attempt{}, t.errs
	}
	if !found.Taken {
		// All are told to release it. Those that said yes are waited for.
		released := r.ask(ctx, r.release(key, 0), func(released *tally) bool {
			return t.undone(released, silent) == 0
		})
		found.Doubt = t.doubt || t.undone(released, failed) > 0
	}
	return found, err
}

func (r *redlock) Extend(ctx context.Context, key, _ string, d time.Duration) error {
	return r.ask(ctx, func(ctx context.Context, node int) (Attempt, error) {
		return Attempt{Taken: true}, r.nodes[node].Extend(ctx, key, r.last.on(node), d)
	}, (*tally).decided).verdict()
}

func (r *redlock) Release(ctx context.Context, key, _ string, after time.Duration) error {
	return r.ask(ctx, r.release(key, after), (*tally).decided).verdict()
}

// release gives back what the last try took, and what earlier ones may have left.
func (r *redlock) release(key string, after time.Duration) question {
	last := r.last
	return func(ctx context.Context, node int) (Attempt, error) {
		err := r.nodes[node].Release(ctx, key, last.on(node), after)
		for _, old := range r.strays[node] {
			if old != last && !errors.Is(err, ErrUnavailable) {
				_ = r.nodes[node].Release(ctx, key, old.on(node), 0)
			}
		}
		if mayHaveHappened(err) {
			r.stray(node, last)
		}
		return Attempt{Taken: true}, err
	}
}

// stray notes a try for a node, and forgets those whose leases are over.
func (r *redlock) stray(node int, t try) {
	over := func(old try) bool { return old == t || time.Now().After(old.end) }
	r.strays[node] = append(slices.DeleteFunc(r.strays[node], over), t)
}

// Valid takes off what the nodes' clocks and this process's may differ in the
// time of a lease.
func (*redlock) Valid(lease time.Duration) time.Duration {
	return lease - lease/100 - 2*time.Millisecond
}

// on is the try's token on a node. It begins with the node's number, so that one
// that is asked twice, by two addresses, is found out: it has the token under
// another number.
func (t try) on(node int) string { return fmt.Sprintf("%d.%d:%s", node+1, t.number, t.token) }

// cutNode parts a token on a node. What is none stays whole.
func cutNode(s string) (node int, token string) {
	number, token, _ := strings.Cut(s, ":")
	first, _, _ := strings.Cut(number, ".")
	node, err := strconv.Atoi(first)
	if err != nil {
		return 0, s
	}
	return node - 1, token
}
