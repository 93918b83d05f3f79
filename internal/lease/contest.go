package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

const (
	// fallback is how long a place waits at most without asking Redis, since a message may be lost. The time is
	// shortened at random. It is also shorter if Timeout is short: only a process that asks notices that Redis is
	// silent.
	fallback = 500 * time.Millisecond
	// asking is the longest pause between two tries of a place that cannot be notified. queue.lua waits for such a place a
	// little longer.
	asking = 100 * time.Millisecond
)

// Won is a lock that the head of a line has acquired.
type Won struct {
	Token string
	Sent  time.Time     // when the lock was asked for
	Span  time.Duration // for how long
}

// A contest is the head of a line competing with other processes for the lock.
type contest[W any] struct {
	*Ticket[W]
	algorithm  Algorithm
	token      string
	until      time.Time     // when the holder's lease ends, as of the last try
	most       time.Duration // for how long cleaning up may keep the caller
	notified   bool          // the place may have been notified since the last try
	maybeTaken bool          // a try may have been done, so the token may have the lock
	won        bool
	hurried    bool // the last try had less time than a round trip has
	swept      bool // nothing is left in Redis, or is being swept
}

// Compete is called for the head of the line. It tries until it has the lock. Then the caller owns the key. If it
// returns an error, the ticket has left the line, and the token does not hold the lock, or is being swept. The lock may
// be acquired just as the caller's context ends, if other callers of this process wait for it.
func (t *Ticket[W]) Compete(a Algorithm) (Won, error) {
	c := contest[W]{Ticket: t, algorithm: a, notified: true}
	defer c.leaveContest() // also if the algorithm panics
	if n := t.lines.Notifiers; n != nil && n.listening(t.Key) {
		c.takePlace() // other callers of this process wait, so the lock is likely to be held
	}
	for try := 0; ; try++ {
		sent := time.Now()
		if !c.maybeTaken { // a token contains the time of its try, so each try has a new one if possible
			c.token = NewToken(BondOf(t.Key), t.Label, sent)
		}
		found, err := c.try(sent)
		if err == nil && found.Taken {
			valid := t.Options.Span
			if cautious, ok := a.(Cautious); ok {
				valid = cautious.Valid(valid)
			}
			err = context.Cause(t.Context)
			if err != nil {
				if _, waits := t.lines.First(t.Key); waits {
					err = nil // the lock is of use to the next in line
				}
			}
			if err == nil && !time.Now().Before(sent.Add(valid)) {
				err = fmt.Errorf("%w: Redis took a whole lease to reply", ErrUnavailable)
			}
			if err == nil {
				c.won = true
				return Won{Token: c.token, Sent: sent, Span: t.Options.Span}, nil
			}
		}
		c.maybeTaken = c.maybeTaken || found.MaybeTaken || scripting.MaybeDone(err)
		if err == nil || scripting.Moving(err) { // it waits for a slot that moves, as for a holder
			ended := c.rest(try, found)
			if ended == nil {
				continue
			}
			err = cmp.Or(err, ended) // the error of a slot that moves says more
		}
		return Won{}, t.waitError(c.fail(found, err))
	}
}

// try is one try, with the place if there is one. It has the time of a round trip. If less than that is left of the
// wait, it ends an eighth of that time after the wait.
func (c *contest[W]) try(sent time.Time) (found Attempt, err error) {
	ctx, o, p := c.Context, c.Options, c.line.place
	least := o.Timeout / 8
	left := max(o.Wait, o.Timeout) - sent.Sub(c.came)
	c.hurried = left < o.Timeout-least
	if c.hurried {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, sent.Add(left+least))
		defer cancel()
	}
	name := ""
	if p != nil {
		name, err = c.placeName(ctx)
	}
	if err == nil {
		found, err = c.algorithm.Take(ctx, c.Key, c.token, name, o.Span)
	}
	if name != "" {
		// If the turn has come without a message, the subscription has missed the message. Or the message is only late,
		// but a wrong suspicion costs little.
		if p.queued && !c.notified && len(p.notified) == 0 &&
			(found.Joined || found.Taken && time.Now().Before(c.until)) {
			p.notifier.resubscribe()
		}
		p.queued = err == nil && found.Queued
	}
	return found, err
}

// fail cleans up after the last try, and returns why there are no more.
func (c *contest[W]) fail(found Attempt, err error) error {
	if !scripting.TimedOut(err) {
		c.most = c.Options.Timeout / 4 // after a timeout the caller has waited long enough
	}
	if found.Taken || c.maybeTaken {
		begun := time.Now()
		c.lines.Sweeper.freeFirst(c.Options, c.most, c.maybeTaken, c.algorithm, c.Key, c.token)
		c.most -= time.Since(begun)
	}
	c.swept = true
	ended := context.Cause(c.Context)
	end, ok := c.Context.Deadline()
	over := ok && !time.Now().Before(end)
	if over && ended == nil { // its timer may be a little late; or an application's own type of context has none
		ended = context.DeadlineExceeded
	}
	switch {
	case !scripting.TimedOut(err) || scripting.Moving(err) || over:
	case ended != nil && errors.Is(err, ended): // the cause is the caller's own: perhaps the silence of another Redis
	case c.hurried: // the wait has ended: Redis was silent only for the rest of it, which says nothing
		err = fmt.Errorf("%w: %w", c.timeout(), err)
	default:
		// Redis was silent for all the time of a round trip. The tickets behind would find that out one after another,
		// the last ticket long after its own Wait.
		c.lines.Dismiss(c.Key, err)
	}
	if ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// leaveContest leaves the line, unless the lock was won. A won lock has taken the place out of the queue. But a try
// that may have been done can come late and put it there again.
func (c *contest[W]) leaveContest() {
	p := c.line.place
	if p != nil {
		p.maybeQueued = p.maybeQueued || c.maybeTaken
	}
	if !c.won && !c.swept { // the algorithm has panicked, or called runtime.Goexit
		c.lines.Sweeper.Free(c.Options, true, c.algorithm, c.Key, c.token)
	}
	if !c.won {
		c.lines.Leave(c.Key, &c.alarm).quit(c.most)
		return
	}
	c.line.place = nil
	switch {
	case p == nil:
	case p.maybeQueued:
		p.quit(0)
	default:
		p.forget()
	}
}

// takePlace gets a place, which the next try puts into the queue, if there is a queue.
func (c *contest[W]) takePlace() {
	n, o := c.lines.Notifiers, c.Options
	queue, ok := c.algorithm.(Queue)
	if c.line.place == nil && n != nil && ok && o.Policy == Poll && o.Wait != NoWait {
		p := n.placeFor(c.Key)
		p.sweeper, p.options, p.queue, p.key = &c.lines.Sweeper, o, queue, c.Key
		c.line.place = p
	}
}

// placeName returns the name of the place for the next try, or "" for a try without the place.
func (c *contest[W]) placeName(ctx context.Context) (string, error) {
	p, old := c.line.place, c.line.place.name
	if p.choose() == old || old == "" {
		return p.name, nil
	}
	err := p.queue.Quit(ctx, c.Key, old)
	if err != nil {
		return "", err
	}
	p.queued = false
	return p.name, c.ended() // the wait may have ended by now
}

// rest pauses after a try that found the lock held. An error ends the wait.
func (c *contest[W]) rest(try int, found Attempt) error {
	c.lines.mu.Lock()
	c.line.meet(Holder{Token: found.Holder, ends: time.Now().Add(found.Left)})
	c.lines.mu.Unlock()
	d, worth := c.Options.pause(try, found.Left, c.patience(), scripting.Chance())
	if !worth {
		return c.timeout()
	}
	c.notified, c.until = true, time.Now().Add(cmp.Or(found.Left, forever))
	c.takePlace()
	var ready, notified <-chan struct{}
	switch p := c.line.place; {
	case p == nil:
	case p.name == "":
		ready = p.ready()
	case !p.queued: // the place may not be in the queue
	case p.isNotified():
		c.notified = false
		d = untilAsking(found.Left, min(fallback, c.Options.Timeout/4), scripting.Chance())
		notified = p.notified
	default:
		d = min(d, asking)
	}
	timer := time.NewTimer(min(d, c.remains()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ready:
	case <-notified:
		c.notified = true
	case <-c.Context.Done():
	}
	return c.ended()
}

// untilAsking returns how long a place waits for its message: at most most, and not beyond the holder's lease, which
// ends after left. random is as in Backoff.delay.
func untilAsking(left, most time.Duration, random float64) time.Duration {
	d := Backoff{Min: most, Max: most}.delay(0, random)
	if left > 0 && left < d {
		// left is cut to whole milliseconds. All waiters have the same left, so chance keeps them apart.
		return left + time.Millisecond + time.Duration(random*float64(10*time.Millisecond))
	}
	return d
}
