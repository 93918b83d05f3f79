package lockertest

import (
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// Validity is what is left of a lease while it is held, and 0 after that.
func validity(c *check) {
	l := c.lock(c.New(patient), "k")
	if v := l.Validity(); v <= 0 || v > patient.Lease {
		c.Errorf("Validity is %v, of a lease of %v", v, patient.Lease)
	}
	if err := l.Extend(c.ctx, time.Hour); err != nil {
		c.Error(err)
	}
	if v := l.Validity(); v <= patient.Lease || v > time.Hour {
		c.Errorf("Validity is %v, of a lease extended by an hour", v)
	}
	c.unlock(l)
	if v := l.Validity(); v != 0 {
		c.Errorf("Validity is %v, of a lease that was given back", v)
	}
}

// Extend makes a lease last longer, at Redis, too, and even beyond MaxHold.
func extends(c *check) {
	p := c.New(patient)
	l := c.lock(p, "k")
	if err := l.Extend(c.ctx, time.Microsecond); err == nil {
		c.Error("Extend by less than Redis counts in is no error")
	}
	c.unlock(l)
	c.timed("a lease is extended before it ends", func(key string, lease time.Duration) bool {
		l, err := c.New(short(lease)).Lock(c.ctx, key)
		if err != nil {
			return c.stalled(err)
		}
		end := time.After(2 * l.Validity())
		if err := l.Extend(c.ctx, time.Minute); err != nil {
			return c.stalled(err)
		}
		<-end
		c.held(key)
		if err := l.Unlock(c.ctx); err != nil {
			return c.stalled(err)
		}
		return true
	})
	c.nothingLeft()
}

// A lease does not end while its holder lives: it is renewed.
func watchdogExtends(c *check) {
	c.timed("a watchdog keeps a lease", func(key string, lease time.Duration) bool {
		o := short(lease)
		o.MaxHold = time.Minute
		l, err := c.New(o).Lock(c.ctx, key)
		if err != nil {
			return c.stalled(err)
		}
		select {
		case <-l.Lost():
		case <-time.After(3 * lease):
		}
		_, err = c.outsider.Lock(c.ctx, key)
		kept := errors.Is(err, locker.ErrTimeout) && l.Validity() > 0
		return l.Unlock(c.ctx) == nil && kept
	})
}

// The renewal stops at MaxHold: the holder is notified, and the lock is free.
func watchdogStops(c *check) {
	c.timed("a watchdog keeps a lease up to MaxHold", func(key string, lease time.Duration) bool {
		o := short(lease)
		o.MaxHold = 3 * lease
		begin := time.Now()
		l, err := c.New(o).Lock(c.ctx, key)
		if err != nil {
			return c.stalled(err)
		}
		c.await("the loss of a lease at MaxHold", l.Lost())
		lasted := time.Since(begin)
		c.unlock(c.lock(c.New(patient), key))
		return lasted > 2*lease
	})
}
