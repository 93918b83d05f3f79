package lockertest

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// The wait ends with Options.Wait, and the error names the holder, whether the holder is in another process
// or in this one.
func waitIsBounded(c *check) {
	const wait = 50 * time.Millisecond
	hasty := with(func(o *locker.Options) { o.Wait = wait })
	p := c.New(hasty)
	ctx := locker.WithLabel(c.ctx, "the label")
	l, err := p.Lock(ctx, "k")
	if err != nil {
		c.Fatal(err)
	}
	for name, waiter := range map[string]*Process{"in line": p, "at Redis": c.New(hasty)} {
		begin := time.Now()
		_, err := waiter.Lock(c.ctx, "k")
		waited := time.Since(begin)
		c.wants(name, err, locker.ErrTimeout)
		if c.kind.SeesRelease && waited < wait { // the other kinds know that it is too late
			c.Errorf("%s: it gave up after %v of %v", name, waited, wait)
		}
		if held, ok := errors.AsType[*locker.HeldError](err); !ok {
			c.Errorf("%s: %v does not tell who has the lock", name, err)
		} else if held.Owner.PID != os.Getpid() || held.Owner.Label != "the label" {
			c.Errorf("%s: it says that %v has the lock", name, held.Owner)
		}
	}
	c.unlock(l)
	c.nothingLeft()
}

// NoWait means one try, which is enough for a free lock.
func noWait(c *check) {
	p := c.New(with(func(o *locker.Options) { o.Wait = locker.NoWait }))
	l := c.lock(p, "k")
	_, err := p.Lock(c.ctx, "k")
	c.wants("Lock of a key that the same process has", err, locker.ErrTimeout)

	before := c.outsider.Exchanges()
	c.held("k")
	if n := c.outsider.Exchanges() - before; n > 2*c.kind.Nodes {
		c.Errorf("%d round trips: one try is a Take and perhaps a Release on each node", n)
	}
	c.unlock(l)
	c.unlock(c.lock(p, "k"))
	c.nothingLeft()
}

// At most Options.MaxWaiters callers of one process wait for a key. The next caller fails at once, without an
// effect on the waiters.
func maxWaiters(c *check) {
	p := c.New(with(func(o *locker.Options) { o.MaxWaiters = 2 }))
	l := c.lock(p, "k")
	first := c.inLine(p, "k")
	second := c.inLine(p, "k")
	_, err := p.Lock(c.ctx, "k")
	c.wants("Lock by one too many", err, locker.ErrTooManyWaiters)
	c.unlock(c.lock(p, "another")) // has its own line
	c.unlock(l)
	c.unlock(first.wins())
	c.unlock(second.wins())
	c.nothingLeft()
}

// The callers of one process acquire the lock in the order in which they came.
func firstComeFirstServed(c *check) {
	p := c.New(patient)
	l := c.lock(p, "k")
	var served []int // guarded by the lock
	var all sync.WaitGroup
	for i := range 8 {
		w := c.inLine(p, "k")
		all.Go(func() {
			<-w.done
			if w.err != nil {
				c.Error(w.err)
				return
			}
			served = append(served, i)
			c.unlock(w.lease)
		})
	}
	c.unlock(l)
	all.Wait()
	if !slices.IsSorted(served) {
		c.Errorf("served in the order %v", served)
	}
	c.nothingLeft()
}

var errGone = errors.New("the caller has gone")

// A caller whose context has ended gets its cause, without a command to Redis.
func cancelledBefore(c *check) {
	p := c.New(patient)
	ctx, cancel := context.WithCancelCause(c.ctx)
	cancel(errGone)
	_, err := p.Lock(ctx, "k")
	c.wants("Lock", err, errGone)
	if errors.Is(err, locker.ErrUnavailable) {
		c.Errorf("%v: that is not the fault of Redis", err)
	}
	if n := p.Exchanges(); n != 0 {
		c.Errorf("%d round trips for a caller that has gone", n)
	}
	c.nothingLeft()
}

// Callers wait while another caller of their process has the lock. A caller that gives up gets the cause, and
// the callers behind it move up.
func waitsInLine(c *check) {
	p := c.New(patient)
	l := c.lock(p, "k")
	first := c.inLine(p, "k")
	second := c.inLine(p, "k")
	first.cancel(errGone)
	first.fails(errGone)
	c.held("k") // by the first caller
	second.waitsFor(l)
}

// Callers wait while another process has the lock. A caller that gives up gets the cause, and the next one in
// line has its turn.
func waitsForOtherProcess(c *check) {
	l := c.lock(c.New(patient), "k")
	p := c.New(patient)
	first := c.atRedis(p, "k")
	second := c.inLine(p, "k")
	before := p.Exchanges()
	first.cancel(errGone)
	first.fails(errGone)
	c.eventually("the next one tries", func() bool { return p.Exchanges() > before })
	if c.kind.SeesRelease {
		second.waitsFor(l)
		return
	}
	second.cancel(errGone)
	second.fails(errGone)
	c.unlock(l)
	c.nothingLeft()
}

// A caller that gives up while the command is under way gets no lease, although Redis may lock the key. No
// such lock stays.
func cancelledDuringTry(c *check) {
	p := c.New(patient)
	resume, deliver := p.Pause()
	w := c.begin(p, "k")
	c.eventually("the first exchange", func() bool { return p.Exchanges() >= c.kind.Nodes })
	w.cancel(errGone)
	resume()
	deliver()
	w.fails(errGone)
	c.nothingLeft()
	c.unlock(c.lock(c.New(patient), "k"))
}
