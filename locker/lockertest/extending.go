package lockertest

import (
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// Validity returns what is left of a lease while it is held, and 0 afterwards.
func validity(c *check) {
	l := c.lock(c.New(patient), "k")
	if v := l.Validity(); v <= 0 || v > patient.Lease {
		c.Errorf("Validity is %v, of a lease of %v", v, patient.Lease)
	}
	if err := l.Extend(c.ctx, time.Microsecond); err == nil {
		c.Error("Extend by less than Redis's unit of time is no error")
	}
	if err := l.Extend(c.ctx, time.Hour); err != nil {
		c.Error(err)
	}
	if v := l.Validity(); v <= patient.Lease || v > time.Hour {
		c.Errorf("Validity is %v, of a lease extended by an hour", v)
	}
	c.unlock(l)
	if v := l.Validity(); v != 0 {
		c.Errorf("Validity is %v, of a lease that was released", v)
	}
}

// Extend makes a lease last longer, also in Redis, and even beyond MaxHold.
func extends(c *check) {
	c.timed("a lease is extended before it ends", func(key string, lease time.Duration) error {
		l, err := c.New(short(lease)).Lock(c.ctx, key)
		if err != nil {
			return err
		}
		end := time.After(2 * l.Validity())
		if err := l.Extend(c.ctx, patient.Lease); err != nil {
			return err
		}
		<-end
		c.held(key)
		return l.Unlock(c.ctx)
	})
}

// A lease does not expire while its holder lives: it is renewed, up to MaxHold. Then the holder is notified,
// and the lock is free.
func watchdogExtends(c *check) {
	c.timed("a watchdog keeps a lease up to MaxHold", func(key string, lease time.Duration) error {
		o := short(lease)
		o.MaxHold = 4 * lease
		l, err := c.New(o).Lock(c.ctx, key)
		if err != nil {
			return err
		}
		select {
		case <-l.Lost():
			return errStalled
		case <-time.After(2 * lease):
		}
		if _, err := c.outsider.Lock(c.ctx, key); !errors.Is(err, locker.ErrTimeout) || l.Validity() <= 0 {
			return errStalled
		}
		c.await("the loss of a lease at MaxHold", l.Lost())
		c.unlock(c.lock(c.New(patient), key))
		return nil
	})
}
