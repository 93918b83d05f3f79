package transport

import (
	"context"
	"errors"
	"os"
	"time"
)

// A connection may die without a word, as behind a firewall that forgets it: what is sent gets
// neither a reply nor an error. Until the timeout, all calls of the link would wait behind the
// first of these, and there would be no time left to repeat them.
//
// So a link that is stuck is probed: a PING goes where new calls go then, to the other link. Its
// reply shows that Redis works, which a PING to a Redis that is paused or busy does not. If then
// nothing comes on the stuck link for as long again, it is given up. That is a guess, since a
// large reply may take as long on a slow network. So it happens once in a timeout at most: what is
// repeated then has the rest of its time.

var errDead = errors.New("there are replies on another connection, but none on this one")

// stuck is how long the first call of a link waits before the link counts as stuck.
func (c *Redigo) stuck() time.Duration { return c.timeout / 8 }

func (l *link) stuckAt(now time.Time) bool {
	return len(l.calls) > 0 && now.Sub(l.calls[0].since) >= l.client.stuck()
}

// deadAt reports whether the link may be given up.
func (l *link) deadAt(now time.Time) bool {
	return !l.overtaken.IsZero() && now.Sub(l.overtaken) >= l.client.stuck() && now.Sub(l.client.gaveUp) >= l.client.timeout
}

// tick breaks the link if a reply, or the connection itself, has not come in time, if it is
// dead, or if the time of a caller is over that still writes for others. It closes the link if
// it was not used for long, or will not be.
func (l *link) tick() {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	now, limit := time.Now(), l.limit()
	switch {
	case l.err != nil || !now.Before(limit):
		l.fail(os.ErrDeadlineExceeded)
	case l.deadAt(now):
		l.client.gaveUp = now
		l.fail(errDead)
	default:
		l.due = limit
		l.timer.Reset(limit.Sub(now))
		if len(l.calls) > 0 {
			next := l.calls[0].since.Add(l.client.stuck())
			if !next.After(now) {
				next = now.Add(l.client.stuck())
			}
			l.tickBy(next)
		}
		if l.suspect(now) && l.client.choose(now) != l {
			l.sendProbe(now)
		}
	}
}

// tickBy makes sure that tick is called by then.
func (l *link) tickBy(then time.Time) {
	if then.Before(l.due) {
		l.due = then
		l.timer.Reset(time.Until(then))
	}
}

// limit is when the link ends if nothing happens.
func (l *link) limit() time.Time {
	limit := l.used.Add(maxIdle)
	if l.retired {
		limit = l.used
	}
	for i, x := range l.calls {
		if i == 0 || x.deadline.Before(limit) {
			limit = x.deadline
		}
	}
	if l.writing && l.writer.deadline.Before(limit) {
		limit = l.writer.deadline
	}
	return limit
}

// suspect reports whether the link needs a probe. A probe that is stuck needs none: where Redis is
// not there, they would go on for ever.
func (l *link) suspect(now time.Time) bool {
	return l.stuckAt(now) && l.probe == nil && !l.calls[0].probe && !l.client.closed
}

// sendProbe finds out whether Redis answers on another link. It waits for that, and so is called
// by tick, in a goroutine that ends by the timeout.
func (l *link) sendProbe(now time.Time) {
	c := l.client
	x := &call{commands: []Command{{"PING"}}, deadline: now.Add(c.timeout), probe: true, wake: make(chan struct{}, 1)}
	l.probe = x
	c.enqueue(x, now)
	c.finish(context.Background(), x, nil)
	if x.err == nil && l.probe == x && l.err == nil {
		l.overtaken = time.Now()
		l.tickBy(l.overtaken.Add(c.stuck()))
	}
}
