package lockertest

import (
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

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
