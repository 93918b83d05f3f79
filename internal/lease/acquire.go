package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/internal/scripting"
)

const (
	// fallback is how long a place waits at most without asking Redis: a message
	// may be lost. It is shortened by chance, and where Timeout is short: until it
	// asks, nobody notices that Redis does not answer.
	fallback = 500 * time.Millisecond
	// A place that is not notified asks at least this often: queue.lua waits for it
	// little longer.
	asking = 100 * time.Millisecond
)

// Lock waits for key by the rules of locker.Locker and returns the lease on it.
func (g *Group) Lock(ctx context.Context, key string, a Algorithm, o Options) (*Lease, error) {
	l, err := g.Acquire(ctx, key, a, o.WithDefaults())
	for err == nil && l.handed && (ctx.Err() != nil || l.Validity() <= 0) {
		_ = l.Unlock(ctx) // what it returns does not matter
		l, err = l.Again()
	}
	return l, err
}

// Acquire is Lock, except that a lock that was handed over within this process may be lost
// by now, or come as ctx ends: where it is of no use, the caller gives it back and calls Again.
// o has no zero fields.
func (g *Group) Acquire(ctx context.Context, key string, a Algorithm, o Options) (*Lease, error) {
	if key == "" || len(key) > MaxKey {
		return nil, fmt.Errorf("locker: the key has %d bytes: it must have 1 to %d", len(key), MaxKey)
	}
	l := &Lease{key: key, algorithm: a, options: o, group: g, caller: ctx, began: time.Now()}
	l.queue, _ = a.(Queue)
	l.span = wholeMillis(min(o.Lease, o.MaxHold))
	err := context.Cause(ctx)
	if err == nil {
		err = l.acquire(false)
	}
	if err != nil {
		return nil, l.failed(err)
	}
	return l, nil
}

// Again goes on waiting for the caller of a lock that was handed over and is of no use. The
// caller keeps its turn, or its place in line, and has what is left of its time.
func (l *Lease) Again() (*Lease, error) {
	next := &Lease{
		key: l.key, algorithm: l.algorithm, queue: l.queue, options: l.options, span: l.span, group: l.group,
		caller: l.caller, began: l.began, again: true,
	}
	l.mu.Lock()
	turn := l.turn // otherwise it was lost, and the turn with it
	l.state, l.turn = released, false
	l.timer.Stop()
	l.mu.Unlock()
	err := next.over()
	if err == nil {
		err = next.acquire(turn)
	} else if turn {
		l.group.leave(l.key, nil)
	}
	if err != nil {
		return nil, next.failed(err)
	}
	return next, nil
}

// An acquisition is the caller that has the turn competing with other processes.
type acquisition struct {
	*Lease
	queue     Queue         // nil: there is none
	place     *place        // nil: none, so far
	notified  bool          // it may have been since the last try
	until     time.Time     // and until then the lock was not to become free by itself
	ambiguous bool          // a reply was lost, so the token may have the lock
	cleaning  time.Duration // how long the caller has waited for that
	won       bool          // it has got it
}

// acquire waits for the turn at the key, unless l has it, and then tries until it has the
// lock. Where it fails, the token does not hold the lock, or will be swept; the turn, and the
// process's place, go to the next caller.
func (l *Lease) acquire(turn bool) (err error) {
	a := acquisition{Lease: l, notified: true}
	if !turn {
		if a.place, err = l.group.enter(l); err != nil || l.handed {
			return err
		}
	}
	defer a.end(&err) // also where the algorithm panics
	if l.options.Policy == Poll && l.group.Notifier != nil {
		a.queue = l.queue
	}
	// Where others of this process wait, the lock is likely to be held.
	if a.queue != nil && a.place == nil && l.group.Notifier.listening() {
		a.join()
	}
	for try := 0; ; try++ {
		sent := time.Now()
		if !a.ambiguous { // a token says since when, so each try has its own while it can
			l.token = newToken(l.options.Label, sent)
		}
		var found Attempt
		name, err := "", error(nil)
		if a.place != nil {
			name, err = a.placeName()
		}
		if err == nil {
			found, err = l.algorithm.Take(l.caller, l.key, l.token, name, l.span)
		}
		if name != "" {
			a.tried(found, err)
		}
		if err == nil && found.Taken {
			end := l.validUntil(sent, l.span)
			if err = context.Cause(l.caller); err == nil && !time.Now().Before(end) {
				err = fmt.Errorf("%w: it took a whole lease to answer", ErrUnavailable)
			}
			if err == nil {
				if l.data = found.Data; l.data == nil {
					l.data = l.algorithm
				}
				l.quota.began = sent
				l.begin(sent, end)
				a.won = true
				return nil
			}
		}
		a.ambiguous = a.ambiguous || found.Ambiguous || scripting.Ambiguous(err)
		if err == nil {
			err = a.rest(try, found)
		}
		if err != nil {
			return a.fail(found, err)
		}
	}
}

// fail cleans up after the last try, and returns why there are no more.
func (a *acquisition) fail(found Attempt, err error) error {
	switch {
	case !found.Taken && !a.ambiguous:
		a.token = "" // it is nowhere
	case scripting.Unanswered(err):
		a.group.Sweep(a.options, a.ambiguous, a.free)
	default:
		begun := time.Now()
		a.group.sweep(a.options, a.options.Timeout/4, a.ambiguous, a.free) // the caller has waited long enough
		a.cleaning = time.Since(begun)
	}
	end, ok := a.caller.Deadline()
	ok = ok && !time.Now().Before(end)
	if ok {
		<-a.caller.Done() // its timer may be a little late
	}
	// A Redis that hangs had all the time that an exchange has. Those behind would each find
	// that out in turn, and the last one long after its own time. Where the caller had less
	// time, its end says nothing about Redis.
	if scripting.Unanswered(err) && !ok && !errors.Is(a.caller.Err(), context.DeadlineExceeded) {
		a.group.dismiss(a.key, err)
	}
	if ended := context.Cause(a.caller); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

// end gives up the turn after err, unless the lock was won, and the place goes with it, or out
// of the queue. A place that has won is in the queue no more, unless a try whose reply was lost
// comes late and puts it there again.
func (a *acquisition) end(err *error) {
	p := a.place
	if p != nil {
		p.ambiguous = p.ambiguous || a.ambiguous
	}
	// The caller has waited long enough: together, a quarter of Timeout is for cleaning up.
	most := a.options.Timeout/4 - a.cleaning
	switch {
	case a.won && p == nil:
	case a.won && p.ambiguous:
		p.quitLater()
	case a.won:
		p.leave()
	case most > 0 && !scripting.Unanswered(*err):
		a.group.leave(a.key, p).quit(most)
	default:
		a.group.leave(a.key, p).quitLater()
	}
}

// join gets a place, for the next try to put into the queue.
func (a *acquisition) join() {
	if a.options.Wait != NoWait {
		a.place = a.group.Notifier.place()
		a.place.lease = a.Lease
	}
}

// placeName returns the name of the place for the next try, "" for none.
func (a *acquisition) placeName() (string, error) {
	p, old := a.place, a.place.name
	if p.choose() == old || old == "" {
		return p.name, nil
	}
	if err := a.queue.Quit(a.caller, a.key, old); err != nil {
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
	a.notified, a.until = true, time.Now().Add(forever)
	if found.Left > 0 {
		a.until = time.Now().Add(found.Left)
	}
	var ready, notified <-chan struct{}
	switch {
	case a.queue == nil:
	case a.place == nil:
		if a.join(); a.place != nil {
			ready = a.place.ready()
		}
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

// untilAsking is how long a place waits for its message, where the holder's lease lasts
// for left more: at most most. random is as in [Backoff.Delay].
func untilAsking(left, most time.Duration, random float64) time.Duration {
	d := Backoff{Min: most, Max: most}.Delay(0, random)
	if left > 0 && left < d {
		// What is left is cut to whole milliseconds, and all who wait know it.
		return left + time.Millisecond + time.Duration(random*float64(10*time.Millisecond))
	}
	return d
}
