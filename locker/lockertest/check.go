package lockertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A check is one promise being checked.
type check struct {
	*testing.T
	Site
	kind     Kind
	ctx      context.Context // ends if an expected event does not happen
	outsider *Process        // another process, which tests whether a lock is free
	done     []string        // the keys that timed has finished with
}

// patience is how long to wait for an event that should happen soon. Busy machines need it.
const patience = 2 * time.Minute

var errNever = errors.New("an event that should have happened soon did not happen")

// patient are options for checks that are not about time: nothing expires, even on a busy machine. Wait is
// more than Lease for callers that would not begin to wait otherwise.
var patient = locker.Options{Lease: 10 * time.Minute, Wait: 20 * time.Minute, Timeout: 20 * time.Second}

// with returns patient options, changed.
func with(change func(o *locker.Options)) locker.Options {
	o := patient
	change(&o)
	return o
}

func newCheck(t *testing.T, kind Kind) *check {
	if kind.FakeTime {
		t.Cleanup(func() { <-time.After(time.Hour) }) // so that operations under way end
	}
	site := kind.Site(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	// Not a deadline: some locks would see that it is near, and not begin to wait.
	timer := time.AfterFunc(patience, func() { cancel(errNever) })
	t.Cleanup(func() { timer.Stop() })
	c := &check{T: t, Site: site, kind: kind, ctx: ctx}

	// Redis knows all scripts after their first use. So the round trip that breaks later is the one that does
	// the work.
	c.outsider = c.New(with(func(o *locker.Options) { o.Wait = locker.NoWait }))
	l := c.lock(c.outsider, "first")
	c.extend(l)
	c.unlock(l)
	c.nothingLeft()
	return c
}

// lock acquires key, which is free or becomes free.
func (c *check) lock(p *Process, key string) *locker.Lease {
	c.Helper()
	l, err := p.Lock(c.ctx, key)
	if err != nil {
		c.Fatal(err)
	}
	return l
}

// extend makes a held lease last long, and must succeed.
func (c *check) extend(l *locker.Lease) {
	c.Helper()
	if err := l.Extend(c.ctx, patient.Lease); err != nil {
		c.Errorf("Extend: %v", err)
	}
}

// unlock releases a held lease, and must succeed.
func (c *check) unlock(l *locker.Lease) {
	c.Helper()
	if err := l.Unlock(c.ctx); err != nil {
		c.Errorf("Unlock: %v", err)
	}
}

// wants checks the error that an operation returned.
func (c *check) wants(what string, err, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// held checks that another process cannot lock key.
func (c *check) held(key string) {
	c.Helper()
	l, err := c.outsider.Lock(c.ctx, key)
	c.wants("Lock by another, while it is held", err, locker.ErrTimeout)
	if err == nil {
		c.unlock(l)
	}
}

// nothingLeft checks that there soon is no trace of any lock. A release may return when most nodes have
// replied, so the last nodes may need a moment more. In real time a few nodes may even have missed the
// release, if they were too slow.
func (c *check) nothingLeft() {
	c.Helper()
	missing := c.kind.few()
	if c.kind.FakeTime {
		missing = 0
	}
	c.eventually("no keys are left", func() bool {
		for _, key := range c.done { // a part of its lock may have come late
			c.forget(c.kind.Nodes, key)
		}
		return c.nodesThatHave("") <= missing
	})
}

// everywhere waits until every node has the lock of key. No lock may have had key before: a node that still
// has the old lock would refuse the new one. The lock may have been acquired when most nodes had replied,
// while the commands for the others are still under way.
func (c *check) everywhere(key string) {
	c.Helper()
	c.eventually("all nodes have the lock", func() bool { return c.nodesThatHave(key) == c.kind.Nodes })
}

// settled is everywhere for a timed check: a node that was too slow for its timeout never gets the lock,
// which proves nothing.
func (c *check) settled() bool {
	for end := time.Now().Add(5 * time.Second); c.nodesThatHave("") < c.kind.Nodes; {
		if time.Now().After(end) || !c.pause() {
			return false
		}
	}
	return true
}

// nodesThatHave counts the nodes that have a key with the prefix.
func (c *check) nodesThatHave(prefix string) (n int) {
	for node := range c.kind.Nodes {
		if slices.ContainsFunc(c.Keys(node), func(key string) bool { return strings.HasPrefix(key, prefix) }) {
			n++
		}
	}
	return n
}

// keys returns the keys that are left on any node.
func (c *check) keys() (all []string) {
	for node := range c.kind.Nodes {
		all = append(all, c.Keys(node)...)
	}
	return all
}

// forget makes the first n nodes forget key.
func (c *check) forget(n int, key string) {
	for node := range n {
		c.Forget(node, key)
	}
}

// pause lets other goroutines run for a moment. It returns false if the time of the check has ended.
func (c *check) pause() bool {
	select {
	case <-c.ctx.Done():
		return false
	case <-time.After(2 * time.Millisecond):
		return true
	}
}

// eventually waits until ok.
func (c *check) eventually(what string, ok func() bool) {
	c.Helper()
	for !ok() {
		if !c.pause() {
			c.Fatalf("never happened: %s; keys left: %q", what, c.keys())
		}
	}
}

// await waits until done.
func (c *check) await(what string, done <-chan struct{}) {
	c.Helper()
	select {
	case <-done:
	case <-c.ctx.Done():
		c.Fatalf("never happened: %s", what)
	}
}

// timed runs a check in which something short, a lease or a timeout, must outlast a few steps. On a machine
// that stalls it may not. Then f returns the error of a late round trip, which proves nothing, and is called
// again with another key and a longer time.
func (c *check) timed(what string, f func(key string, d time.Duration) error) {
	c.Helper()
	var err error
	for d := 100 * time.Millisecond; d < 20*time.Second; d *= 3 {
		key := what + " in " + d.String()
		err = f(key, d)
		c.done = append(c.done, key)
		if err == nil {
			c.nothingLeft()
			return
		}
		if c.kind.FakeTime || !isLate(err) { // nothing is late in fake time
			break
		}
	}
	c.Errorf("%s: %v", what, err)
}

// errStalled says that a step of a timed check took too long.
var errStalled = fmt.Errorf("it did not happen in time: %w", locker.ErrUnavailable)

// isLate reports whether a round trip took too long, or so long that it was repeated: a repeated release
// finds no holder.
func isLate(err error) bool {
	return errors.Is(err, locker.ErrUnavailable) || errors.Is(err, locker.ErrExpired)
}

// short are options for a lease that expires.
func short(lease time.Duration) locker.Options {
	return with(func(o *locker.Options) { o.Lease, o.MaxHold, o.Timeout = lease, lease, lease/4 })
}

// hasty are options for round trips that hang.
func hasty(timeout time.Duration) locker.Options {
	return with(func(o *locker.Options) { o.Timeout = timeout })
}
