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
	// fallback is how long a place waits at most without asking Redis: a message may be lost. It
	// is shorter by chance, and where Timeout is short: only who asks notices a silent Redis.
	fallback = 500 * time.Millisecond
	// A place that is not notified asks at least this often. queue.lua waits little longer.
	asking = 100 * time.Millisecond
)

// Won is a lock that the head of a line has got.
type Won struct {
	Token string
	Sent  time.Time     // when it was asked for
	Span  time.Duration // for how long
}

// A contest is the head of a line competing with other processes for the lock.
type contest[W any] struct {
	*Ticket[W]
	algorithm Algorithm
	place     *place // in the queue; nil: none, so far
	token     string
	span      time.Duration // for which the lock is taken
	notified  bool          // it may have been since the last try
	until     time.Time     // and until then the lock was not to become free by itself
	ambiguous bool          // a reply was lost, so the token may have the lock
	won       bool
	hurried   bool          // the last try had less time than a round trip has
	swept     bool          // nothing is left in Redis, or is being swept
	patience  time.Duration // how long the caller may be kept by cleaning up
}

// Compete is for the head of the line. It tries until it has the lock, and then owns the key. After an error
// its token does not hold the lock, or will be swept, and it has left the line; it is refused, as by Enter.
// The lock may come as the caller's context ends, if others of this process wait for it.
func (t *Ticket[W]) Compete(a Algorithm) (Won, error) {
	span := WholeMillis(min(t.Options.Lease, t.Options.MaxHold))
	c := contest[W]{Ticket: t, algorithm: a, place: t.place, span: span, notified: true}
	t.place = nil
	defer c.end() // also if the algorithm panics
	won, err := c.compete()
	if err != nil {
		return Won{}, t.failed(err)
	}
	return won, nil
}

func (c *contest[W]) compete() (Won, error) {
	if n := c.lines.Notifiers; n != nil && n.listening(c.Key) {
		c.join() // others of this process wait, so the lock is likely to be held
	}
	for try := 0; ; try++ {
		sent := time.Now()
		if !c.ambiguous { // a token says since when, so each try has its own while it can
			c.token = NewToken(BondOf(c.Key), c.Label, sent)
		}
		found, err := c.try(sent)
		if err == nil && found.Taken {
			if err = c.late(sent); err == nil {
				c.won = true
				return Won{Token: c.token, Sent: sent, Span: c.span}, nil
			}
		}
		c.ambiguous = c.ambiguous || found.Ambiguous || scripting.MaybeDone(err)
		if err == nil || scripting.Moving(err) { // a slot that moves is waited for, as a holder is
			over := c.rest(try, found)
			if over == nil {
				continue
			}
			err = cmp.Or(err, over) // that a slot moves says more
		}
		return Won{}, c.fail(found, err)
	}
}

// late returns why a lock that was taken is of no use.
func (c *contest[W]) late(sent time.Time) error {
	if c.Context.Err() != nil && !c.lines.othersWait(c.Key) { // else it is the turn of the next of them
		return context.Cause(c.Context)
	}
	if !time.Now().Before(sent.Add(c.algorithm.Valid(c.span))) {
		return fmt.Errorf("%w: it took a whole lease to answer", ErrUnavailable)
	}
	return nil
}

// try is one try, with the place if there is one. It has the time of a round trip. But if the caller
// has waited, it ends with the wait, or an eighth of that time later: what one has at the least.
func (c *contest[W]) try(sent time.Time) (found Attempt, err error) {
	ctx, o := c.Context, c.Options
	least := o.Timeout / 8
	left := max(o.Wait, o.Timeout) - sent.Sub(c.came)
	c.hurried = left < o.Timeout-least
	if c.hurried {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, sent.Add(left+least))
		defer cancel()
	}
	name := ""
	if c.place != nil {
		name, err = c.placeName(ctx)
	}
	if err == nil {
		found, err = c.algorithm.Take(ctx, c.Key, c.token, name, c.span)
	}
	if name != "" {
		c.tried(found, err)
	}
	return found, err
}

// fail cleans up after the last try, and returns why there are no more.
func (c *contest[W]) fail(found Attempt, err error) error {
	if !scripting.TimedOut(err) {
		c.patience = c.Options.Timeout / 4 // the caller has waited long enough
	}
	if found.Taken || c.ambiguous {
		begun, key, token, a := time.Now(), c.Key, c.token, c.algorithm
		c.lines.Sweeper.sweep(c.Options, c.patience, c.ambiguous, func(ctx context.Context) bool {
			return freed(ctx, a, key, token)
		})
		c.patience -= time.Since(begun)
	}
	c.swept = true
	if end, ok := c.Context.Deadline(); ok && !time.Now().Before(end) {
		<-c.Context.Done() // its timer may be a little late
	}
	switch {
	case !scripting.TimedOut(err) || scripting.Moving(err) || errors.Is(c.Context.Err(), context.DeadlineExceeded):
	case c.hurried: // the wait is over, and that Redis was silent for the rest of it says nothing
		err = fmt.Errorf("%w: %w", c.timeout(), err)
	default:
		// A Redis that hangs had all the time of a round trip. Those behind would each find that out
		// in turn, the last one long after its own time.
		c.lines.Dismiss(c.Key, err)
	}
	if ended := context.Cause(c.Context); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// end leaves the line, with the place, unless the lock was won. Then the place is in the queue
// no more, unless a try whose reply was lost comes late and puts it there again.
func (c *contest[W]) end() {
	p := c.place
	if p != nil {
		p.ambiguous = p.ambiguous || c.ambiguous
	}
	if !c.won && !c.swept { // the algorithm has panicked, or called runtime.Goexit
		c.lines.Sweeper.Free(c.Options, c.algorithm, c.Key, c.token)
	}
	switch {
	case !c.won:
		c.lines.leave(c.Key, p).quit(c.patience)
	case p == nil:
	case p.ambiguous:
		p.quit(0)
	default:
		p.leave()
	}
}

// join gets a place, for the next try to put into the queue, if there is one to wait in.
func (c *contest[W]) join() {
	n, o := c.lines.Notifiers, c.Options
	queue, ok := c.algorithm.(Queue)
	if c.place == nil && n != nil && ok && o.Policy == Poll && o.Wait != NoWait {
		c.place = n.place(c.Key)
		c.place.sweeper, c.place.options, c.place.queue, c.place.key = &c.lines.Sweeper, o, queue, c.Key
	}
}

// placeName returns the name of the place for the next try, "" for none.
func (c *contest[W]) placeName(ctx context.Context) (string, error) {
	p, old := c.place, c.place.name
	if p.choose() == old || old == "" {
		return p.name, nil
	}
	if err := p.queue.Quit(ctx, c.Key, old); err != nil {
		return "", err
	}
	p.queued = false
	return p.name, c.over() // which it may be by now
}

// tried notes what a try with the place has found.
func (c *contest[W]) tried(found Attempt, err error) {
	p := c.place
	// The turn has come without a message: the lock was given to the place. It may be the
	// message that is late; a wrong suspicion costs little.
	if p.queued && !c.notified && len(p.notified) == 0 &&
		(found.Joined || found.Taken && time.Now().Before(c.until)) {
		p.notifier.replace()
	}
	p.queued = err == nil && found.Queued
}

// rest pauses after a try that found the lock held. An error ends the wait.
func (c *contest[W]) rest(try int, found Attempt) error {
	c.lines.saw(c.Key, Holder{Token: found.Holder, End: time.Now().Add(found.Left)})
	d, worth := c.Options.next(try, found.Left, c.left(), scripting.Chance())
	if !worth {
		return c.timeout()
	}
	c.notified, c.until = true, time.Now().Add(cmp.Or(found.Left, forever))
	c.join()
	var ready, notified <-chan struct{}
	switch {
	case c.place == nil:
	case c.place.name == "":
		ready = c.place.ready()
	case !c.place.queued: // it may not be
	case c.place.isNotified():
		c.notified = false
		d = untilAsking(found.Left, min(fallback, c.Options.Timeout/4), scripting.Chance())
		notified = c.place.notified
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
	return c.over()
}

// untilAsking is how long a place waits for its message, at most most, where the holder's lease
// lasts for left more. random is as in [Backoff.Delay].
func untilAsking(left, most time.Duration, random float64) time.Duration {
	d := Backoff{Min: most, Max: most}.Delay(0, random)
	if left > 0 && left < d {
		// What is left is cut to whole milliseconds, and all who wait know it.
		return left + time.Millisecond + time.Duration(random*float64(10*time.Millisecond))
	}
	return d
}
