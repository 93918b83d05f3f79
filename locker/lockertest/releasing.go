package lockertest

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A lock that was given back is free for the next that asks, even if the context has ended:
// that is how a deferred Unlock often comes. To give it back again does nothing, not even
// where another has it by then.
func unlocks(c *check) {
	l := c.lock(c.New(patient), "k")
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	if err := l.Unlock(ctx); err != nil {
		c.Error(err)
	}
	c.nothingLeft()
	other := c.lock(c.New(patient), "k")
	c.unlock(l)
	c.held("k")
	c.wants("Extend of what was given back", l.Extend(c.ctx, time.Hour), locker.ErrExpired)
	c.held("k")
	c.unlock(other)
	c.nothingLeft()
	select {
	case <-l.Lost():
		c.Error("what was given back is called lost")
	default:
	}
}

// A cool-down keeps the lock shut for all, those of the same process included, until it is
// over. Nobody holds it meanwhile, so nobody can end it.
func coolsDown(c *check) {
	const delay = 100 * time.Millisecond
	p := c.New(with(func(o *locker.Options) { o.Wait = locker.NoWait }))
	l := c.lock(p, "k")
	if err := l.UnlockAfter(c.ctx, time.Hour); err != nil {
		c.Error(err)
	}
	if v := l.Validity(); v != 0 {
		c.Errorf("Validity is %v, of a lease that was given back", v)
	}
	c.unlock(l)
	c.wants("Extend of what was given back", l.Extend(c.ctx, time.Hour), locker.ErrExpired)
	_, err := p.Lock(c.ctx, "k")
	c.wants("Lock by the same process", err, locker.ErrTimeout)
	c.held("k")

	l = c.lock(p, "k2")
	if err := l.UnlockAfter(c.ctx, -1); err == nil {
		c.Error("a negative delay is no error")
	}
	c.held("k2") // it was not given back
	begin := time.Now()
	if err := l.UnlockAfter(c.ctx, delay); err != nil {
		c.Error(err)
	}
	c.unlock(c.lock(c.New(patient), "k2"))
	if passed := time.Since(begin); passed < delay {
		c.Errorf("it was over after %v of %v", passed, delay)
	}
}
