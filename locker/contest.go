package locker

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"
)

const (
	// fallback is how long a place waits at most without asking Redis: a message
	// may be lost. It is shortened by chance.
	fallback = 500 * time.Millisecond
	// A place that is not told asks at least this often: queue.lua waits for it
	// little longer.
	asking = 100 * time.Millisecond
)

// A contest is the head of the line competing with other processes.
type contest struct {
	wait
	guard  *Guard
	lease  *Lease
	relay  Relay     // nil: there is no queue
	place  *place    // nil: none, so far
	queued bool      // the place was in the queue after the last try
	rung   bool      // and may have been told since
	until  time.Time // and until then the lock was not to become free by itself
	doubt  bool      // a reply was lost, so the token may have the lock
}

// take tries until the lease has the lock. Where it fails, the token does not
// hold it, or will be swept out.
func (g *Guard) take(w *wait, l *Lease) error {
	c := &contest{wait: *w, guard: g, lease: l}
	if l.options.Policy == Poll && l.options.Wait != NoWait {
		c.relay, _ = l.algorithm.(Relay)
	}
	defer c.leave() // also where the algorithm panics
	if c.relay != nil && c.relay.doorbell().listening() {
		c.enter() // others of this process wait, so the lock is likely to be held
	}
	return c.run()
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
				l.turn, l.place = turn{began: sent}, ""
				l.start(sent, end) // from here on it may leave the line by itself
				return nil
			}
		}
		c.doubt = c.doubt || found.Doubt || mayHaveHappened(err)
		if err == nil {
			err = c.rest(try, found)
		}
		if err == nil {
			continue
		}
		if !found.Taken && !c.doubt {
			l.token = "" // it is nowhere
		}
		if l.token != "" || l.place != "" {
			l.sweep(0, l.options.Timeout/4, c.doubt) // the caller has waited long enough
		}
		if ended := context.Cause(c.caller); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return err
	}
}

// span is for how long the lock is taken at a time.
func (l *Lease) span() time.Duration { return wholeMillis(min(l.options.Lease, l.options.MaxHold)) }

// enter gets a place, for the next try to put into the queue.
func (c *contest) enter() { c.place = c.relay.doorbell().place() }

func (c *contest) leave() {
	if c.place != nil {
		c.place.leave()
	}
}

// try makes one try, with the place once it is known whether it will be told, and
// from then on always: else the lock might be won without it, and be given to it
// later.
func (c *contest) try() (Attempt, error) {
	l := c.lease
	if c.place == nil || l.place == "" && !c.place.settled() {
		return l.algorithm.Take(c.caller, l.key, l.token, l.span())
	}
	if name := c.place.choose(); name != l.place {
		if l.place != "" {
			if err := c.relay.Quit(c.caller, l.key, l.place); err != nil {
				return Attempt{}, err
			}
			c.queued = false
		}
		l.place = name
	}
	found, err := c.relay.Queue(c.caller, l.key, l.token, l.place, l.span())
	if c.unheard(found) {
		c.place.bell.distrust()
	}
	c.queued = err == nil && found.Queued
	return found, err
}

// unheard reports whether the turn has come, as a try has found, without a message:
// whoever had the lock gave it to the place. It may be the message that is late; a
// wrong suspicion costs little.
func (c *contest) unheard(found Attempt) bool {
	if !c.queued || c.rung || len(c.place.rung) > 0 {
		return false
	}
	return found.Joined || found.Taken && time.Now().Before(c.until)
}

// rest pauses after a try that found the lock held. An error ends the wait.
func (c *contest) rest(try int, found Attempt) error {
	l := c.lease
	c.guard.line.sees(l.key, sighting{token: found.Holder, end: time.Now().Add(found.Left)})
	d, worth := l.options.next(try, found.Left, c.left(), mathrand.Float64())
	if !worth {
		return ErrTimeout
	}
	c.rung, c.until = true, time.Now().Add(orElse(found.Left, forever))
	var ready, rung <-chan struct{}
	switch {
	case c.relay == nil:
	case c.place == nil:
		c.enter()
		ready = c.place.ready()
	case l.place == "":
		ready = c.place.ready()
	case !c.queued: // it may not be
	case c.place.told():
		c.rung = false
		d = untilAsking(found.Left, mathrand.Float64())
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
// for left more. random is as in [Backoff.Delay].
func untilAsking(left time.Duration, random float64) time.Duration {
	d := Backoff{Min: fallback, Max: fallback}.Delay(0, random)
	if left > 0 && left < d {
		// What is left is cut to whole milliseconds, and all who wait know it.
		return left + time.Millisecond + time.Duration(random*float64(10*time.Millisecond))
	}
	return d
}

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
