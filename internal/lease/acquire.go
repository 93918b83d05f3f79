package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/scripting"
)

const (
	// fallback is how long a place waits at most without asking Redis: a message may be lost. It
	// is shorter by chance, and where Timeout is short: only who asks notices a silent Redis.
	fallback = 500 * time.Millisecond
	// A place that is not notified asks at least this often. queue.lua waits little longer.
	asking = 100 * time.Millisecond
)

// Lock waits for key by the rules of locker.Locker and returns the lease on it.
func (g *Group) Lock(ctx context.Context, key string, a Algorithm, o Options) (*Lease, error) {
	o = o.WithDefaults()
	l, err := g.Acquire(ctx, key, a, &o, o.Label)
	for err == nil && (ctx.Err() != nil || l.handed && l.Validity() <= 0) {
		_ = l.Unlock(ctx) // what it returns does not matter
		l, err = l.Again()
	}
	return l, err
}

// Acquire is Lock, except that the lock may come as ctx ends, and one that was handed over may be
// lost by now: where it is of no use, the caller gives it back and calls Again. o has no zero fields, and
// must not be changed afterwards; the label is this one.
func (g *Group) Acquire(ctx context.Context, key string, a Algorithm, o *Options, label string) (*Lease, error) {
	if key == "" || len(key) > MaxKey {
		return nil, fmt.Errorf("locker: the key has %d bytes: it must have 1 to %d", len(key), MaxKey)
	}
	l := &Lease{key: key, algorithm: a, options: o, label: label, group: g, caller: ctx, began: time.Now()}
	l.span = wholeMillis(min(o.Lease, o.MaxHold))
	return l.wait(context.Cause(ctx), false)
}

// Again goes on waiting where a lock that was handed over is of no use. The caller keeps its
// turn, or its place in line, and has what is left of its time.
func (l *Lease) Again() (*Lease, error) {
	next := &Lease{
		key: l.key, algorithm: l.algorithm, options: l.options, label: l.label, span: l.span, group: l.group,
		caller: l.caller, began: l.began, again: true,
	}
	l.mu.Lock()
	turn := l.turn // otherwise it was lost, and the turn with it
	l.state, l.turn = released, false
	l.stopTimer()
	l.group.release(l)
	l.mu.Unlock()
	return next.wait(next.over(), turn)
}

// wait is the rest of Acquire and Again, unless over says why the wait has ended.
func (l *Lease) wait(over error, turn bool) (*Lease, error) {
	err := over
	switch {
	case err == nil:
		err = l.acquire(turn)
	case turn:
		l.group.leave(l)
	}
	if err != nil {
		if l.group.closed.Load() && errors.Is(err, ErrUnavailable) {
			err = ErrClosed // which is why, whatever the client says of itself
		}
		took := time.Since(l.began).Round(time.Millisecond)
		return nil, fmt.Errorf("locker: waited %v for %s: %w", took, excerpt.Of(l.key), err)
	}
	return l, nil
}

// An acquisition is the caller that has the turn competing with other processes.
type acquisition struct {
	*Lease
	place     *place        // of the Lease, which has none once it has begun; nil: none, so far
	notified  bool          // it may have been since the last try
	until     time.Time     // and until then the lock was not to become free by itself
	ambiguous bool          // a reply was lost, so the token may have the lock
	won       bool          // it has got it
	hurried   bool          // the last try had less time than a round trip has
	swept     bool          // nothing is left in Redis, or is being swept
	patience  time.Duration // how long the caller may be kept by cleaning up
}

// acquire waits for the turn at the key, unless l has it, and then tries until it has the
// lock. Where it fails, the token does not hold the lock, or will be swept.
func (l *Lease) acquire(turn bool) error {
	if !turn {
		if err := l.group.enter(l); err != nil || l.handed {
			return err
		}
	}
	a := acquisition{Lease: l, place: l.place, notified: true}
	l.place = nil
	defer a.end() // also where the algorithm panics
	if n := l.group.Notifiers; n != nil && n.listening(l.key) {
		a.join() // others of this process wait, so the lock is likely to be held
	}
	for try := 0; ; try++ {
		sent := time.Now()
		if !a.ambiguous { // a token says since when, so each try has its own while it can
			l.token = newToken(BondOf(l.key), l.label, sent)
		}
		found, err := a.try(sent)
		end := l.validUntil(sent, l.span)
		switch {
		case err != nil || !found.Taken:
		case l.caller.Err() != nil && !l.group.wait(l.key): // else it is the turn of the next of them
			err = context.Cause(l.caller)
		case !time.Now().Before(end):
			err = fmt.Errorf("%w: it took a whole lease to answer", ErrUnavailable)
		default:
			l.data = cmp.Or[Extender](found.Data, l.algorithm)
			l.quota.began = sent
			l.begin(sent, end)
			a.won = true
			return nil
		}
		a.ambiguous = a.ambiguous || found.Ambiguous || scripting.Ambiguous(err)
		if err == nil || scripting.Moving(err) { // a slot that moves is waited for, as a holder is
			if over := a.rest(try, found); over == nil || err == nil {
				err = over
			}
		}
		if err != nil {
			return a.fail(found, err)
		}
	}
}

// try is one try, with the place if there is one. It has the time of a round trip. But where the caller
// has waited, it ends with the wait, or an eighth of that time later: what one has at the least.
func (a *acquisition) try(sent time.Time) (found Attempt, err error) {
	ctx, o := a.caller, a.options
	least := o.Timeout / 8
	left := max(o.Wait, o.Timeout) - sent.Sub(a.began)
	if a.hurried = left < o.Timeout-least; a.hurried {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, sent.Add(left+least))
		defer cancel()
	}
	name := ""
	if a.place != nil {
		name, err = a.placeName(ctx)
	}
	if err == nil {
		found, err = a.algorithm.Take(ctx, a.key, a.token, name, a.span)
	}
	if name != "" {
		a.tried(found, err)
	}
	return found, err
}

// fail cleans up after the last try, and returns why there are no more.
func (a *acquisition) fail(found Attempt, err error) error {
	if !scripting.Unanswered(err) {
		a.patience = a.options.Timeout / 4 // the caller has waited long enough
	}
	if found.Taken || a.ambiguous {
		begun := time.Now()
		a.group.sweep(*a.options, a.patience, a.ambiguous, a.free)
		a.patience -= time.Since(begun)
	}
	a.swept = true
	if end, ok := a.caller.Deadline(); ok && !time.Now().Before(end) {
		<-a.caller.Done() // its timer may be a little late
	}
	switch {
	case !scripting.Unanswered(err) || scripting.Moving(err) || errors.Is(a.caller.Err(), context.DeadlineExceeded):
	case a.hurried: // the wait is over, and that Redis was silent for the rest of it says nothing
		err = fmt.Errorf("%w: %w", a.timeout(), err)
	default:
		// A Redis that hangs had all the time of a round trip. Those behind would each find that out
		// in turn, the last one long after its own time.
		a.Dismiss(err)
	}
	if ended := context.Cause(a.caller); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// end gives up the turn, with the place, unless the lock was won. Then the place is in the queue
// no more, unless a try whose reply was lost comes late and puts it there again.
func (a *acquisition) end() {
	p := a.place
	if p != nil {
		p.ambiguous = p.ambiguous || a.ambiguous
	}
	if !a.won && !a.swept { // the algorithm has panicked, or called runtime.Goexit
		a.Sweep(a.token)
	}
	switch {
	case !a.won:
		a.Lease.place = p
		a.group.leave(a.Lease).quit(a.patience)
	case p == nil:
	case p.ambiguous:
		p.quit(0)
	default:
		p.leave()
	}
}

// join gets a place, for the next try to put into the queue, where there is one to wait in.
func (a *acquisition) join() {
	n, o := a.group.Notifiers, a.options
	queue, ok := a.algorithm.(Queue)
	if a.place == nil && n != nil && ok && o.Policy == Poll && o.Wait != NoWait {
		a.place = n.place(a.key)
		a.place.lease, a.place.queue = a.Lease, queue
	}
}

// placeName returns the name of the place for the next try, "" for none.
func (a *acquisition) placeName(ctx context.Context) (string, error) {
	p, old := a.place, a.place.name
	if p.choose() == old || old == "" {
		return p.name, nil
	}
	if err := p.queue.Quit(ctx, a.key, old); err != nil {
		return "", err
	}
	p.queued = false
	return p.name, a.over() // which it may be by now
}

// tried notes what a try with the place has found.
func (a *acquisition) tried(found Attempt, err error) {
	p := a.place
	// The turn has come without a message: the lock was given to the place. It may be the
	// message that is late; a wrong suspicion costs little.
	if p.queued && !a.notified && len(p.notified) == 0 &&
		(found.Joined || found.Taken && time.Now().Before(a.until)) {
		p.notifier.replace()
	}
	p.queued = err == nil && found.Queued
}

// rest pauses after a try that found the lock held. An error ends the wait.
func (a *acquisition) rest(try int, found Attempt) error {
	a.group.setHolder(a.key, holder{token: found.Holder, end: time.Now().Add(found.Left)})
	d, worth := a.options.next(try, found.Left, a.left(), scripting.Chance())
	if !worth {
		return a.timeout()
	}
	a.notified, a.until = true, time.Now().Add(cmp.Or(found.Left, forever))
	a.join()
	var ready, notified <-chan struct{}
	switch {
	case a.place == nil:
	case a.place.name == "":
		ready = a.place.ready()
	case !a.place.queued: // it may not be
	case a.place.isNotified():
		a.notified = false
		d = untilAsking(found.Left, min(fallback, a.options.Timeout/4), scripting.Chance())
		notified = a.place.notified
	default:
		d = min(d, asking)
	}
	timer := time.NewTimer(min(d, a.remains()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ready:
	case <-notified:
		a.notified = true
	case <-a.caller.Done():
	}
	return a.over()
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
