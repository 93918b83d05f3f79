package lockertest

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A caller waits while another process has the lock, and gets it after that.
func waitsForOtherProcess(c *check) {
	l := c.lock(c.New(patient), "k")
	w := c.atRedis(c.New(patient), "k")
	select {
	case <-w.done:
		c.Fatalf("Lock returned while another has the lock: %v", w.err)
	default:
	}
	c.unlock(l)
	c.unlock(w.wins())
	c.nothingLeft()
}

// A caller waits while another one of its own process has the lock, and gets it
// after that.
func waitsInLine(c *check) {
	p := c.New(patient)
	l := c.lock(p, "k")
	w := c.inLine(p, "k")
	c.held("k")
	select {
	case <-w.done:
		c.Fatalf("Lock returned while another has the lock: %v", w.err)
	default:
	}
	c.unlock(l)
	c.unlock(w.wins())
	c.nothingLeft()
}

// The wait ends with Options.Wait, and the error says who has the lock. It is
// the same whether that is another process or a caller of this one.
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
		if c.kind.SeesRelease && waited < wait { // the others know that it is too late
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

// NoWait is one try: enough for a lock that is free, and no more.
func noWait(c *check) {
	p := c.New(with(func(o *locker.Options) { o.Wait = locker.NoWait }))
	l := c.lock(p, "k")
	_, err := p.Lock(c.ctx, "k")
	c.wants("Lock of what the same process has", err, locker.ErrTimeout)

	before := c.outsider.Exchanges()
	c.held("k")
	if n := c.outsider.Exchanges() - before; n > 2*c.kind.Nodes {
		c.Errorf("%d exchanges: one try is a Take and perhaps a Release on each node", n)
	}
	c.unlock(l)
	c.unlock(c.lock(p, "k"))
	c.nothingLeft()
}

// No more callers of one process wait for a key than Options.MaxWaiters. The next
// one learns that at once, and those that wait lose nothing by it.
func maxWaiters(c *check) {
	p := c.New(with(func(o *locker.Options) { o.MaxWaiters = 2 }))
	l := c.lock(p, "k")
	first := c.inLine(p, "k")
	second := c.inLine(p, "k")
	_, err := p.Lock(c.ctx, "k")
	c.wants("Lock by one too many", err, locker.ErrTooManyWaiters)
	c.unlock(c.lock(p, "another")) // has a line of its own
	c.unlock(l)
	c.unlock(first.wins())
	c.unlock(second.wins())
	c.nothingLeft()
}

// The callers of one process get the lock in the order they came.
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
