package lockertest

import (
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A command to acquire a lock reaches Redis after the caller has given up, and has even checked that the
// command did not acquire the lock. The command may then acquire the lock, but not for long: the process
// looks for the lock again, and frees it.
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

// A command to release a lock reaches Redis when another caller has the lock. That caller keeps it.
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
