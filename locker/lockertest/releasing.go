package lockertest

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A lock that was released is free for the next caller, even if Unlock's context has ended, as it often has
// in a deferred Unlock. A second release does nothing, even if another caller has the lock by then.
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
	c.wants("Extend of a released lease", l.Extend(c.ctx, time.Hour), locker.ErrExpired)
	c.held("k")
	c.unlock(other)
	c.nothingLeft()
	select {
	case <-l.Lost():
		c.Error("a released lease is called lost")
	default:
	}
}

// A cool-down keeps the lock locked for all callers, including those of the same process, until it ends. No
// caller holds the lock meanwhile, so no caller can end the cool-down.
func coolsDown(c *check) {
	const delay = 100 * time.Millisecond
	p := c.New(with(func(o *locker.Options) { o.Wait = locker.NoWait }))
	l := c.lock(p, "k")
	if err := l.UnlockAfter(c.ctx, time.Hour); err != nil {
		c.Error(err)
	}
	if v := l.Validity(); v != 0 {
		c.Errorf("Validity is %v, of a lease that was released", v)
	}
	c.unlock(l)
	c.wants("Extend of a released lease", l.Extend(c.ctx, time.Hour), locker.ErrExpired)
	_, err := p.Lock(c.ctx, "k")
	c.wants("Lock by the same process", err, locker.ErrTimeout)
	c.held("k")

	l = c.lock(p, "k2")
	if err := l.UnlockAfter(c.ctx, -1); err == nil {
		c.Error("a negative delay is no error")
	}
	c.held("k2") // it was not released
	begin := time.Now()
	if err := l.UnlockAfter(c.ctx, delay); err != nil {
		c.Error(err)
	}
	c.unlock(c.lock(c.New(patient), "k2"))
	if passed := time.Since(begin); passed < delay {
		c.Errorf("it was over after %v of %v", passed, delay)
	}
}
