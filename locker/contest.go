package locker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// fallback is how long a place waits at most without asking Redis: a message
	// may be lost. It is shortened by chance, and where Timeout is short: until it
	// asks, nobody notices that Redis does not answer.
	fallback = 500 * time.Millisecond
	// A place that is not told asks at least this often: queue.lua waits for it
	// little longer.
	asking = 100 * time.Millisecond
)

// A contest is the head of the line competing with other processes.
type contest struct {
	*wait
	guard *Guard
	lease *Lease
	relay Relay     // nil: there is no queue
	place *place    // nil: none, so far
	rung  bool      // it may have been told since the last try
	until time.Time // and until then the lock was not to become free by itself
	doubt bool      // a reply was lost, so the token may have the lock
}

// take tries until the lease has the lock. Where it fails, the token does not
// hold it, or will be swept out. A place is left to the next in line then.
func (g *Guard) take(l *Lease) error {
	c := &contest{wait: l.wait, guard: g, lease: l, rung: true}
	if l.options.Policy == Poll {
		c.relay, _ = l.algorithm.(Relay)
	}
	won := false
	defer func() { c.leave(won) }() // also where the algorithm panics
	if c.relay != nil {
		c.place = g.line.takePlace(l.key)
		// Where others of this process wait, the lock is likely to be held.
		if c.place == nil && c.relay.doorbell().listening() {
			c.enter()
		}
	}
	err := c.run()
	won = err == nil
	return err
}

func (c *contest) run() error {
	l := c.lease
	for try := 0; ; try++ {
		sent := time.Now()
		if !c.doubt { // a token tells since when, so each try has its own while it can
			l.token = l.newToken(sent)
		}
		found, err := c.try()
		if err == nil && found.Taken {
			end := sent.Add(l.algorithm.Valid(l.span()))
			if err = unusable(c.caller, end); err == nil {
				c.guard.line.sees(l.key, sighting{token: l.token, lease: l})
				l.turn = turn{began: sent}
				l.start(sent, end) // from here on it may leave the line by itself
				return nil
			}
		}
		c.doubt = c.doubt || found.Doubt || mayHaveHappened(err)
		if err == nil {
			err = c.rest(try, found)
		}
		if err != nil {
			c.clean(found, err)
			return c.because(err)
		}
	}
}

// clean frees the lock of a token that has it, or may have it.
func (c *contest) clean(found Attempt, err error) {
	l := c.lease
	switch {
	case !found.Taken && !c.doubt:
		l.token = "" // it is nowhere
	case unanswered(err):
		l.options.sweepLater(c.doubt, l.free)
	default:
		begun := time.Now()
		l.options.sweep(l.options.Timeout/4, c.doubt, l.free) // the caller has waited long enough
		c.cleaning = time.Since(begun)
	}
}

// because returns err with the reason why the caller's time is over, if it is.
func (c *contest) because(err error) error {
	if end, ok := c.caller.Deadline(); ok && !time.Now().Before(end) {
		<-c.caller.Done() // its timer may be a little late
	}
	if ended := context.Cause(c.caller); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// enter gets a place, for the next try to put into the queue.
func (c *contest) enter() {
	if c.lease.options.Wait != NoWait {
		c.place = newPlace(c.relay, c.lease)
	}
}

// leave is the end of the contest. A place that has won is in the queue no more, unless a
// try that nobody has heard of comes late and puts it there again.
func (c *contest) leave(won bool) {
	p := c.place
	if p == nil {
		return
	}
	p.doubt = p.doubt || c.doubt
	switch {
	case !won:
		c.guard.line.leavePlace(c.lease.key, p)
	case p.doubt:
		p.quitLater()
	default:
		p.leave()
	}
}

// try makes one try, with the place once it is known whether it will be told, and
// from then on always: else the lock might be won without it, and be given to it
// later.
func (c *contest) try() (Attempt, error) {
	l, p := c.lease, c.place
	if p == nil || p.name == "" && !p.settled() {
		return l.algorithm.Take(c.caller, l.key, l.token, l.span())
	}
	ctx := c.caller
	if old := p.name; old != p.choose() && old != "" {
		// Together they take no longer than one exchange may.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.options.Timeout)
		defer cancel()
		if err := c.relay.Quit(ctx, l.key, old); err != nil {
			return Attempt{}, err
		}
		p.queued = false
	}
	found, err := c.relay.Queue(ctx, l.key, l.token, p.name, l.span())
	if c.unheard(found) {
		p.bell.distrust()
	}
	p.queued = err == nil && found.Queued
	return found, err
}

// unheard reports whether the turn has come, as a try has found, without a message:
// whoever had the lock gave it to the place. It may be the message that is late; a
// wrong suspicion costs little.
func (c *contest) unheard(found Attempt) bool {
	if !c.place.queued || c.rung || len(c.place.rung) > 0 {
		return false
	}
	return found.Joined || found.Taken && time.Now().Before(c.until)
}

// rest pauses after a try that found the lock held. An error ends the wait.
func (c *contest) rest(try int, found Attempt) error {
	l := c.lease
	c.guard.line.sees(l.key, sighting{token: found.Holder, end: time.Now().Add(found.Left)})
	d, worth := l.options.next(try, found.Left, c.left(), chance())
	if !worth {
		return ErrTimeout
	}
	c.rung, c.until = true, time.Now().Add(orElse(found.Left, forever))
	var ready, rung <-chan struct{}
	switch {
	case c.relay == nil:
	case c.place == nil:
		if c.enter(); c.place != nil {
			ready = c.place.ready()
		}
	case c.place.name == "":
		ready = c.place.ready()
	case !c.place.queued: // it may not be
	case c.place.told():
		c.rung = false
		d = untilAsking(found.Left, min(fallback, l.options.Timeout/4), chance())
		rung = c.place.rung
	default:
		d = min(d, asking)
	}
	timer := time.NewTimer(min(d, c.remains()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ready:
	case <-rung:
		c.rung = true
	case <-c.caller.Done():
	}
	return c.over()
}

// untilAsking is how long a place waits to be told, where the holder's lease lasts
// for left more: at most most. random is as in [Backoff.Delay].
func untilAsking(left, most time.Duration, random float64) time.Duration {
	d := Backoff{Min: most, Max: most}.Delay(0, random)
	if left > 0 && left < d {
		// What is left is cut to whole milliseconds, and all who wait know it.
		return left + time.Millisecond + time.Duration(random*float64(10*time.Millisecond))
	}
	return d
}

// span is for how long the lock is taken at a time.
func (l *Lease) span() time.Duration { return wholeMillis(min(l.options.Lease, l.options.MaxHold)) }

// unusable returns why a lock that was taken until end must not be given out.
func unusable(ctx context.Context, end time.Time) error {
	if ended := context.Cause(ctx); ended != nil {
		return ended // whoever asked is gone
	}
	if !time.Now().Before(end) {
		return fmt.Errorf("%w: it took a whole lease to answer", ErrUnavailable)
	}
	return nil
}
