package lockertest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A lease that has expired has ended, whatever Redis still has of it. Its holder is told so by every
// operation: if no other caller has acquired the lock since, that the lease has expired.
func expires(c *check) {
	c.timed("a lease expires", func(key string, lease time.Duration) error {
		p := c.New(short(lease))
		l, err := p.Lock(c.ctx, key)
		if err != nil {
			return err
		}
		c.isLost(l)
		extended, unlocked := l.Extend(c.ctx, time.Hour), l.Unlock(c.ctx)
		if err := cmp.Or(slow(extended), slow(unlocked)); err != nil {
			return err
		}
		c.wants("Extend", extended, locker.ErrExpired)
		c.wants("Unlock", unlocked, locker.ErrExpired)
		c.wants("a second Unlock", l.Unlock(c.ctx), locker.ErrExpired)
		return nil
	})
}

// If another caller has the lock by then, a holder whose lease has expired is told that, and cannot touch the
// other's lock. No other caller acquires the lock sooner. The same holds for a holder whose commands do not
// reach Redis any more: they arrive late.
func losesToAnother(c *check) {
	for what, paused := range map[string]bool{
		"a lease expires, and another takes the lock": false,
		"another takes the lock of a paused holder":   true,
	} {
		c.timed(what, func(key string, lease time.Duration) error {
			o := short(lease)
			if paused {
				o.MaxHold = time.Hour // so that the holder tries to extend the lease
			}
			p := c.New(o)
			l, err := p.Lock(c.ctx, key)
			if err != nil {
				return err
			}
			resume, deliver := func() {}, func() {}
			if paused {
				resume, deliver = p.Pause()
			}
			other := c.lock(c.New(patient), key)
			if v := l.Validity(); v > 0 {
				c.Errorf("another caller has the lock %v before the lease ends", v)
			}
			resume()
			deliver()
			<-time.After(2 * lease) // by then the other's lease would have ended, if it had got this end
			return c.lostTo(other, l, key)
		})
	}
}

// lostTo checks that l cannot be used any more after other has acquired its lock. The error is from a process
// that was too slow to learn of the loss.
func (c *check) lostTo(other, l *locker.Lease, key string) error {
	c.Helper()
	defer c.unlock(other)
	c.isLost(l)
	extended, unlocked := l.Extend(c.ctx, time.Hour), l.UnlockAfter(c.ctx, time.Hour)
	if err := cmp.Or(slow(extended), slow(unlocked)); err != nil {
		return err
	}
	c.wants("Extend of another's lock", extended, locker.ErrLost)
	c.wants("Unlock of another's lock", unlocked, locker.ErrLost)
	c.held(key)
	c.extend(other)
	return nil
}

// slow returns err if it is from a round trip that took too long.
func slow(err error) error {
	if errors.Is(err, locker.ErrUnavailable) {
		return err
	}
	return nil
}

// isLost checks that the holder of l is soon told that l is lost.
func (c *check) isLost(l *locker.Lease) {
	c.Helper()
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	l.OnLost(cancel)
	c.await("the loss of a lease", l.Lost())
	<-ctx.Done()
	c.wants("the cause that OnLost gave", context.Cause(ctx), locker.ErrLost)
	if v := l.Validity(); v != 0 {
		c.Errorf("Validity is %v, of a lease that is lost", v)
	}
}

// Redis, or most of several nodes, has forgotten a lock. The holder learns of it from its next operation, and
// by Lost.
func forgotten(c *check) {
	for key, extends := range map[string]bool{"k": true, "another": false} {
		l := c.lock(c.New(patient), key)
		c.everywhere(key)
		c.forget(c.kind.few()+1, key)
		if extends {
			c.wants("Extend", l.Extend(c.ctx, time.Hour), locker.ErrExpired)
			c.isLost(l)
		}
		c.wants("Unlock", l.Unlock(c.ctx), locker.ErrExpired)
		c.nothingLeft()
	}
}

// Redis has forgotten a lock, and another caller has acquired it since. The first holder is told so, and
// cannot touch the other's lock.
func forgottenAndTaken(c *check) {
	p := c.New(patient)
	for key, extends := range map[string]bool{"k": true, "another": false} {
		l := c.lock(p, key)
		c.everywhere(key)
		c.forget(c.kind.few()+1, key)
		other := c.lock(c.New(patient), key)
		if extends {
			c.wants("Extend of another's lock", l.Extend(c.ctx, time.Hour), locker.ErrLost)
			c.wants("what became of it", c.lostTo(other, l, key), nil)
		} else {
			c.wants("Unlock of another's lock", l.Unlock(c.ctx), locker.ErrLost)
			c.held(key)
			c.unlock(other)
		}
		c.nothingLeft()
	}
}

// Less than half of the nodes may forget a lock: the holder does not notice, and no other caller acquires the
// lock. A caller that has tried leaves nothing on the nodes that forgot.
func forgottenByAFew(c *check) {
	p := c.New(patient)
	l := c.lock(p, "k")
	c.everywhere("k")
	c.forget(c.kind.few(), "k")
	c.held("k")
	c.extend(l)
	c.held("k")
	c.unlock(l)
	c.nothingLeft()
	c.unlock(c.lock(p, "k"))
}

// Scripts may vanish from Redis at any time. No caller notices.
func scriptsVanish(c *check) {
	p := c.New(patient)
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
