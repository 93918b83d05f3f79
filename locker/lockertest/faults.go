package lockertest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// An accident is the faults of the next round trips to some of the nodes.
type accident struct {
	nodes int
	ways  []Fault
}

func (a accident) String() string { return fmt.Sprintf("%v on %d nodes", a.ways, a.nodes) }

// happen makes the accident happen to the next round trips of p.
func (a accident) happen(p *Process) {
	for node := range a.nodes {
		p.Break(node, a.ways...)
	}
}

func (a accident) hangs() bool { return slices.Contains(a.ways, Hang) }

// options are for a process that has the accident. Only a process that waits in vain must not be patient.
func (a accident) options(timeout time.Duration) locker.Options {
	if a.hangs() {
		return hasty(timeout)
	}
	return patient
}

// excuses reports whether a may end in err. A few nodes are not needed, and a round trip that breaks once is
// repeated.
func (c *check) excuses(a accident, err error) bool {
	hopeless := len(a.ways) > 1 || a.hangs() || !c.kind.Repeats
	return a.nodes > c.kind.few() && hopeless && errors.Is(err, locker.ErrUnavailable)
}

// suffer runs f with each of the ways, on a few nodes, on one too many, and on all. f returns the error that
// ended it early, unless that was excused.
func (c *check) suffer(f func(a accident, p *Process, key string) error, ways ...[]Fault) {
	c.Helper()
	few := c.kind.few()
	for _, nodes := range slices.Compact([]int{max(1, few), few + 1, c.kind.Nodes}) {
		for _, w := range ways {
			a := accident{nodes, w}
			c.timed(a.String(), func(key string, timeout time.Duration) error {
				return f(a, c.New(a.options(timeout)), key)
			})
		}
	}
}

// once are the accidents that happen once.
var once = [][]Fault{{LoseReply}, {CutReply}, {LoseCommand}, {Hang}}

// The network fails while a lock is acquired. Either the lock is acquired nevertheless, and works; or the
// caller gets an error, and soon nothing is left, although the process does not know what Redis did. If only
// the connection broke, soon means when Lock returns. If Redis hung, it may take a moment more. The process
// goes on.
func faultsOnTake(c *check) {
	c.suffer(func(a accident, p *Process, key string) error {
		a.happen(p)
		l, err := p.Lock(c.ctx, key)
		switch {
		case err == nil:
			c.held(key)
			if err := c.use(l); err != nil {
				return err
			}
		case !c.excuses(a, err):
			return err
		case c.kind.Nodes == 1 && !a.hangs():
			if keys := c.keys(); len(keys) > 0 {
				c.Errorf("%v: Lock failed and left %q", a, keys)
			}
		}
		c.nothingLeft()
		if l, err = p.Lock(c.ctx, key); err != nil {
			return err
		}
		return l.Unlock(c.ctx)
	}, slices.Concat(once, [][]Fault{{LoseReply, LoseReply}, {CutReply, LoseCommand}, {LoseCommand, LoseReply}})...)
}

// The network fails while a lease is extended. The lease goes on, extended or not.
func faultsOnExtend(c *check) {
	c.suffer(func(a accident, p *Process, key string) error {
		l, err := c.lockEverywhere(p, key)
		if err != nil {
			return err
		}
		a.happen(p)
		if err := l.Extend(c.ctx, time.Hour); err != nil && !c.excuses(a, err) {
			return err
		}
		c.held(key)
		return c.use(l)
	}, once...)
}

// The network fails while a lock is released. Then the lock is free, or the caller is told that Redis did not
// reply.
func faultsOnRelease(c *check) {
	c.suffer(func(a accident, p *Process, key string) error {
		l, err := c.lockEverywhere(p, key)
		if err != nil {
			return err
		}
		a.happen(p)
		err = l.Unlock(c.ctx)
		switch {
		case err == nil, errors.Is(err, locker.ErrExpired): // a repeated release finds nothing
		case c.excuses(a, err):
			c.forget(c.kind.Nodes, key) // otherwise it would stay until the end of its lease
		default:
			return err
		}
		c.nothingLeft()
		c.unlock(c.lock(c.New(patient), key))
		return nil
	}, once...)
}

// lockEverywhere acquires key on every node. It also fails if a node was too slow.
func (c *check) lockEverywhere(p *Process, key string) (*locker.Lease, error) {
	l, err := p.Lock(c.ctx, key)
	if err == nil && !c.settled() {
		return nil, errStalled
	}
	return l, err
}

// use tests all operations on a held lease.
func (c *check) use(l *locker.Lease) error {
	if err := l.Extend(c.ctx, patient.Lease); err != nil {
		return fmt.Errorf("extending it: %w", err)
	}
	return l.Unlock(c.ctx)
}
