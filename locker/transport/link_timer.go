package transport

import (
	"context"
	"fmt"
	"os"
	"time"
)

// A connection may die silently, for example behind a firewall that forgets it: commands then get neither a reply
// nor an error. All calls of the link would wait behind the first such call until the timeout, and no time would
// be left to repeat them.
//
// So a link that is stuck is probed. A PING is sent on the other link, where new calls go as well. A reply shows
// that Redis works; a Redis that is paused or busy does not reply. If the stuck link then stays silent for as
// long again, it is given up. It may be alive, since a large reply on a slow network may take as long. So at most
// one link is given up in a timeout: the calls that are repeated then have the rest of their time.

var errDead = fmt.Errorf("there are replies on another connection, but none on this one: %w", os.ErrDeadlineExceeded)

// tick breaks the link if a reply, or the connection itself, has not come in time, if the link is dead, or if a
// caller has no time left but still writes for other callers. tick also closes a link that was not used for a
// while, or that is retired and has no calls.
func (l *link) tick() {
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	now, due := time.Now(), l.limit()
	switch {
	case l.err != nil || !now.Before(due):
		l.fail(os.ErrDeadlineExceeded)
		return
	case !l.overtaken.IsZero() && now.Sub(l.overtaken) >= c.stuck && now.Sub(c.gaveUp) >= c.timeout:
		c.gaveUp = now
		l.fail(errDead)
		return
	}
	stuck := false
	if len(l.calls) > 0 {
		next := l.calls[0].since.Add(c.stuck)
		stuck = !next.After(now)
		if stuck {
			next = now.Add(c.stuck)
		}
		if next.Before(due) {
			due = next
		}
	}
	l.due = due
	l.timer.Reset(due.Sub(now))
	// A probe that is stuck is not probed: while Redis is down, the probes would go on for ever.
	if stuck && l.probe == nil && !l.calls[0].probe && !c.closed && c.choose(now) != l {
		l.sendProbe(now)
	}
}

// limit is when the link ends if nothing happens.
func (l *link) limit() time.Time {
	limit := l.used
	switch {
	case len(l.calls) > 0:
		limit = l.calls[0].deadline
	case !l.retired:
		limit = l.used.Add(maxIdle)
	}
	for _, x := range l.calls {
		if x.deadline.Before(limit) {
			limit = x.deadline
		}
	}
	if l.writing && l.writer.deadline.Before(limit) {
		limit = l.writer.deadline
	}
	return limit
}

// sendProbe finds out whether Redis replies on another link, and waits for the reply. tick runs in the timer's
// goroutine, which ends by the timeout.
func (l *link) sendProbe(now time.Time) {
	c := l.client
	x := &call{commands: []Command{{"PING"}}, deadline: now.Add(c.timeout), probe: true, wake: make(chan struct{}, 1)}
	l.probe = x
	c.enqueue(x, now)
	c.deliver(context.Background(), x, nil)
	if x.err == nil && l.probe == x && l.err == nil {
		l.overtaken = time.Now() // tick looks again within c.stuck
	}
}
