package lockertest

import (
	"context"
	"errors"
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
	stalls   []string        // keys of what had to be called again; see timed
}

// patience is how long to wait for what should happen soon. Busy machines need
// it; and it is less than a lease that must not end meanwhile.
const patience = 40 * time.Second

var errNever = errors.New("what should have happened soon never did")

// patient are options for what is not about time: nothing runs out, even on a
// machine that is busy with something else. Wait is more than Lease for those
// that would not begin to wait otherwise.
var patient = locker.Options{Lease: time.Minute, Wait: 2 * time.Minute, Timeout: 10 * time.Second}

// with returns patient options, changed.
func with(change func(o *locker.Options)) locker.Options {
	o := patient
	change(&o)
	return o
}

func newCheck(t *testing.T, kind Kind) *check {
	ctx, cancel := context.WithCancelCause(t.Context())
	// Not a deadline: some would see that it is near, and not begin to wait.
	timer := time.AfterFunc(patience, func() { cancel(errNever) })
	t.Cleanup(func() { timer.Stop() })
	c := &check{T: t, Site: kind.Site(t), kind: kind, ctx: ctx}

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

// extend makes a lease that is held last a minute, and must succeed.
func (c *check) extend(l *locker.Lease) {
	c.Helper()
	if err := l.Extend(c.ctx, time.Minute); err != nil {
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

// nothingLeft checks that there soon is no trace of any lock. A lock may be given
// back when most nodes have answered, so the last may need a moment more.
func (c *check) nothingLeft() {
	c.Helper()
	c.eventually("no keys are left", func() bool {
		c.forgetStalls()
		return len(c.keys()) == 0
	})
}

// settled waits until every node knows of the only lock there is. It may have been
// won when most of them had answered, and the commands for the others be on their
// way.
func (c *check) settled() {
	c.Helper()
	c.eventually("all nodes have the lock", func() bool {
		for node := range c.kind.Nodes {
			if len(c.Keys(node)) == 0 {
				return false
			}
		}
		return true
	})
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

// eventually waits until ok.
func (c *check) eventually(what string, ok func() bool) {
	c.Helper()
	for !ok() {
		select {
		case <-c.ctx.Done():
			c.Fatalf("never happened: %s; keys left: %q", what, c.keys())
		case <-time.After(time.Millisecond):
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
