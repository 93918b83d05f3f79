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
	ctx      context.Context // ends when what should happen never will
	outsider *Process        // another process, which tries whether a lock is free
	done     []string        // the keys that timed is through with
}

// patience is how long to wait for what should happen soon. Busy machines need it.
const patience = 2 * time.Minute

var errNever = errors.New("what should have happened soon never did")

// patient are options for what is not about time: nothing runs out, even on a
// machine that is busy with something else. Wait is more than Lease for those
// that would not begin to wait otherwise.
var patient = locker.Options{Lease: 10 * time.Minute, Wait: 20 * time.Minute, Timeout: 20 * time.Second}

// with returns patient options, changed.
func with(change func(o *locker.Options)) locker.Options {
	o := patient
	change(&o)
	return o
}

func newCheck(t *testing.T, kind Kind) *check {
	if kind.FakeTime {
		t.Cleanup(func() { <-time.After(time.Hour) }) // so that what is under way comes to an end
	}
	site := kind.Site(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	// Not a deadline: some would see that it is near, and not begin to wait.
	timer := time.AfterFunc(patience, func() { cancel(errNever) })
	t.Cleanup(func() { timer.Stop() })
	c := &check{T: t, Site: site, kind: kind, ctx: ctx}

	// Redis knows all scripts after their first use. So the exchange that breaks
	// later is the one that does the work.
	c.outsider = c.New(with(func(o *locker.Options) { o.Wait = locker.NoWait }))
	l := c.lock(c.outsider, "first")
	c.extend(l)
	c.unlock(l)
	c.nothingLeft()
	return c
}

// lock takes key, which is free or becomes so.
func (c *check) lock(p *Process, key string) *locker.Lease {
	c.Helper()
	l, err := p.Lock(c.ctx, key)
	if err != nil {
		c.Fatal(err)
	}
	return l
}

// extend makes a lease that is held last long, and must succeed.
func (c *check) extend(l *locker.Lease) {
	c.Helper()
	if err := l.Extend(c.ctx, patient.Lease); err != nil {
		c.Errorf("Extend: %v", err)
	}
}

// unlock gives back a lease that is held, and must succeed.
func (c *check) unlock(l *locker.Lease) {
	c.Helper()
	if err := l.Unlock(c.ctx); err != nil {
		c.Errorf("Unlock: %v", err)
	}
}

// wants is about what an operation returned.
func (c *check) wants(what string, err, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// held checks that another process does not get key.
func (c *check) held(key string) {
	c.Helper()
	l, err := c.outsider.Lock(c.ctx, key)
	c.wants("Lock by another, while it is held", err, locker.ErrTimeout)
	if err == nil {
		c.unlock(l)
	}
}

// nothingLeft checks that there soon is no trace of any lock. A lock may be given back when
// most nodes have answered, so the last may need a moment more. In real time a few may even
// have missed what they were told, if they were too slow.
func (c *check) nothingLeft() {
	c.Helper()
	missing := c.kind.few()
	if c.kind.FakeTime {
		missing = 0
	}
	c.eventually("no keys are left", func() bool {
		for _, key := range c.done { // a part of it may have come late
			c.forget(c.kind.Nodes, key)
		}
		return c.nodesThatHave("") <= missing
	})
}

// everywhere waits until every node has the lock of key, which no lock had before: a node may still have
// that, and would refuse this one. It may have been won when most of them had answered, and the commands
// for the others be on their way.
func (c *check) everywhere(key string) {
	c.Helper()
	c.eventually("all nodes have the lock", func() bool { return c.nodesThatHave(key) == c.kind.Nodes })
}

// settled is everywhere for a check that is timed: a node that was too slow for its time-out
// never gets the lock, which proves nothing.
func (c *check) settled() bool {
	for end := time.Now().Add(5 * time.Second); c.nodesThatHave("") < c.kind.Nodes; {
		if time.Now().After(end) || !c.pause() {
			return false
		}
	}
	return true
}

// nodesThatHave counts the nodes that have any keys which begin with prefix.
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

// forget makes the first n nodes forget key. Which ones does not matter.
func (c *check) forget(n int, key string) {
	for node := range n {
		c.Forget(node, key)
	}
}

// pause lets others go on for a moment. It returns false if there is no more time.
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

// timed runs a check in which something short, a lease or a time-out, must outlast
// a few steps. On a machine that stalls it may not; f returns an error of a late exchange
// then, which proves nothing, and is called again with another key and a longer time.
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

// errStalled is of a check that is timed, where something took too long.
var errStalled = fmt.Errorf("it did not happen in time: %w", locker.ErrUnavailable)

// isLate reports whether an exchange took too long, or so long that it was repeated: a release
// that was done finds nobody then.
func isLate(err error) bool {
	return errors.Is(err, locker.ErrUnavailable) || errors.Is(err, locker.ErrExpired)
}

// short are options for a lease that runs out.
func short(lease time.Duration) locker.Options {
	return with(func(o *locker.Options) { o.Lease, o.MaxHold, o.Timeout = lease, lease, lease/4 })
}

// hasty are options for exchanges that hang.
func hasty(timeout time.Duration) locker.Options {
	return with(func(o *locker.Options) { o.Timeout = timeout })
}
