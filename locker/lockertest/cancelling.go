package lockertest

import (
	"context"
	"errors"

	"github.com/a2139e8d/latchkey/locker"
)

var errGone = errors.New("the caller has gone")

// A caller whose context has ended gets its cause, and nobody asks Redis.
func cancelledBefore(c *check) {
	p := c.New(patient)
	ctx, cancel := context.WithCancelCause(c.ctx)
	cancel(errGone)
	_, err := p.Lock(ctx, "k")
	c.wants("Lock", err, errGone)
	if errors.Is(err, locker.ErrUnavailable) {
		c.Errorf("%v: that is not the fault of Redis", err)
	}
	if n := p.Exchanges(); n != 0 {
		c.Errorf("%d exchanges for a caller that has gone", n)
	}
	c.nothingLeft()
}

// A caller that gives up while in line gets the cause, and those behind move up.
func cancelledInLine(c *check) {
	p := c.New(patient)
	l := c.lock(p, "k")
	first := c.inLine(p, "k")
	second := c.inLine(p, "k")
	first.cancel(errGone)
	first.fails(errGone)
	c.held("k") // by whom it was
	c.unlock(l)
	c.unlock(second.wins())
	c.nothingLeft()
}

// A caller that gives up while another process has the lock gets the cause, and the next
// one in line has its turn.
func cancelledBetweenTries(c *check) {
	l := c.lock(c.New(patient), "k")
	p := c.New(patient)
	first := c.atRedis(p, "k")
	second := c.inLine(p, "k")
	before := p.Exchanges()
	first.cancel(errGone)
	first.fails(errGone)
	c.eventually("the next one tries", func() bool { return p.Exchanges() > before })
	if c.kind.SeesRelease {
		c.unlock(l)
		c.unlock(second.wins())
	} else {
		second.cancel(errGone)
		second.fails(errGone)
		c.unlock(l)
	}
	c.nothingLeft()
}

// Who gives up while the command is under way gets no lock, though Redis may give
// it, and no such lock stays.
func cancelledDuringTry(c *check) {
	p := c.New(patient)
	resume, deliver := p.Pause()
	w := c.begin(p, "k")
	c.eventually("the first exchange", func() bool { return p.Exchanges() >= c.kind.Nodes })
	w.cancel(errGone)
	resume()
	deliver()
	w.fails(errGone)
	c.nothingLeft()
	c.unlock(c.lock(c.New(patient), "k"))
}
