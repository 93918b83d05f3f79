package lockertest

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A lease that has run out is over, whatever Redis may still have of it. Its
// holder is told in every way there is: that it has expired, where nobody has
// taken the lock since.
func expires(c *check) {
	c.timed("a lease runs out", func(key string, lease time.Duration) bool {
		p := c.New(short(lease))
		l, err := p.Lock(c.ctx, key)
		if err != nil {
			return c.stalled(err)
		}
		c.isLost(l)
		extended, unlocked := l.Extend(c.ctx, time.Hour), l.Unlock(c.ctx)
		if isSlow(extended) || isSlow(unlocked) {
			return false
		}
		c.wants("Extend", extended, locker.ErrExpired)
		c.wants("Unlock", unlocked, locker.ErrExpired)
		c.unlock(l) // it was, for the last time
		return true
	})
	c.nothingLeft()
}

// Where another has the lock by then, a holder whose lease has run out is told
// that, and cannot touch the other's lock. No other gets it sooner.
func losesToAnother(c *check) {
	c.timed("a lease runs out, and another takes the lock", func(key string, lease time.Duration) bool {
		l, err := c.New(short(lease)).Lock(c.ctx, key)
		if err != nil {
			return c.stalled(err)
		}
		other := c.lock(c.New(patient), key)
		if v := l.Validity(); v > 0 {
			c.Errorf("another has the lock %v before the lease ends", v)
		}
		return c.lostTo(other, l, key)
	})
	c.nothingLeft()
}

// lostTo checks that l, which other has taken the lock from, is of no more use. It
// returns false where l's process was too slow to learn it.
func (c *check) lostTo(other, l *locker.Lease, key string) bool {
	c.Helper()
	defer c.unlock(other)
	c.isLost(l)
	extended, unlocked := l.Extend(c.ctx, time.Hour), l.UnlockAfter(c.ctx, time.Hour)
	if isSlow(extended) || isSlow(unlocked) {
		return false
	}
	c.wants("Extend of another's lock", extended, locker.ErrLost)
	c.wants("Unlock of another's lock", unlocked, locker.ErrLost)
	c.held(key)
	c.extend(other)
	return true
}

// isLost checks that the holder of l is told, soon, that it is lost.
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
