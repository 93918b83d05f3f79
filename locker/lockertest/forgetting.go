package lockertest

import (
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// Redis has forgotten a lock: most nodes have, where there are several. The holder
// learns that when it next asks, and by Lost.
func forgotten(c *check) {
	l := c.lock(c.New(patient), "k")
	c.settled()
	c.forget(c.kind.few()+1, "k")
	c.wants("Extend", l.Extend(c.ctx, time.Hour), locker.ErrExpired)
	c.isLost(l)
	c.wants("Unlock", l.Unlock(c.ctx), locker.ErrExpired)
	c.nothingLeft()

	l = c.lock(c.New(patient), "k2")
	c.settled()
	c.forget(c.kind.few()+1, "k2")
	c.wants("Unlock", l.Unlock(c.ctx), locker.ErrExpired)
	c.nothingLeft()
}

// Redis has forgotten a lock, and another has taken it since. The first holder is
// told, and cannot touch the other's lock.
func forgottenAndTaken(c *check) {
	p := c.New(patient)
	l := c.lock(p, "k")
	c.settled()
	c.forget(c.kind.few()+1, "k")
	other := c.lock(c.New(patient), "k")
	c.wants("Extend of another's lock", l.Extend(c.ctx, time.Hour), locker.ErrLost)
	c.lostTo(other, l, "k")

	l = c.lock(p, "k2")
	c.settled()
	c.forget(c.kind.few()+1, "k2")
	other = c.lock(c.New(patient), "k2")
	c.wants("Unlock of another's lock", l.Unlock(c.ctx), locker.ErrLost)
	c.held("k2")
	c.unlock(other)
	c.nothingLeft()
}

// Less than half of the nodes may forget a lock: nobody notices, and nobody else
// gets it. Whoever has tried leaves nothing on those that forgot.
func forgottenByAFew(c *check) {
	p := c.New(patient)
	l := c.lock(p, "k")
	c.settled()
	c.forget(c.kind.few(), "k")
	c.held("k")
	c.extend(l)
	c.held("k")
	c.unlock(l)
	c.nothingLeft()
	c.unlock(c.lock(p, "k"))
}

// Scripts vanish from Redis at any time. Nobody notices.
func scriptsVanish(c *check) {
	p := c.New(patient)
	for range 3 {
		c.ScriptFlush()
		l := c.lock(p, "k")
		c.ScriptFlush()
		c.held("k")
		c.ScriptFlush()
		c.extend(l)
		c.ScriptFlush()
		c.unlock(l)
		c.nothingLeft()
	}
}
