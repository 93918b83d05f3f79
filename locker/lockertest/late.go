package lockertest

import (
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// Nothing of a holder reaches Redis any more. So another gets the lock when the
// lease is over, and the holder learns that it has lost. What it had sent comes
// late, and cannot touch the other's lock.
func pausedHolder(c *check) {
	c.timed("another takes the lock of a holder that is paused", func(key string, lease time.Duration) error {
		o := short(lease)
		o.MaxHold = time.Hour // so that it tries to extend the lease
		p := c.New(o)
		l, err := p.Lock(c.ctx, key)
		if err != nil {
			return err
		}
		resume, deliver := p.Pause()
		other := c.lock(c.New(patient), key)
		if v := l.Validity(); v > 0 {
			c.Errorf("another has the lock %v before the lease ends", v)
		}
		resume()
		deliver()
		<-time.After(2 * lease) // had it become the end of the other's, too, that would be over
		return c.lostTo(other, l, key)
	})
}

// A command that was to take a lock reaches Redis when the caller has given up, and
// has even made sure that it did not take the lock. It may take it then, but not
// for long: it is looked for again, and swept out.
func lateTake(c *check) {
	c.timed("a take comes late", func(key string, timeout time.Duration) error {
		p := c.New(hasty(timeout))
		resume, deliver := p.Pause()
		w := c.begin(p, key)
		c.eventually("the first try", func() bool { return p.Exchanges() >= c.kind.Nodes })
		resume()
		w.fails(locker.ErrUnavailable)
		deliver()
		c.nothingLeft()
		l, err := p.Lock(c.ctx, key)
		if err != nil {
			return err
		}
		return l.Unlock(c.ctx)
	})
}

// A command that was to give back a lock reaches Redis when another has it. That
// one keeps it.
func lateRelease(c *check) {
	c.timed("a release comes late", func(key string, timeout time.Duration) error {
		p := c.New(hasty(timeout))
		l, err := c.lockEverywhere(p, key)
		if err != nil {
			return err
		}
		resume, deliver := p.Pause()
		c.wants("Unlock", l.Unlock(c.ctx), locker.ErrUnavailable)
		c.forget(c.kind.Nodes, key) // as at the end of its lease
		other := c.lock(c.New(patient), key)
		resume()
		deliver()
		c.held(key)
		c.extend(other)
		c.unlock(other)
		return nil
	})
}
