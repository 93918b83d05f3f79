package locker

import (
	"context"
	"fmt"
	"time"
)

// A Guard makes locks of algorithms: it queues the callers of this process,
// retries, and keeps what was won. All callers that compete for a key in one
// process should use one Guard. The zero Guard is ready.
type Guard struct{ line line }

// Lock waits for key by the rules of [Locker] and returns the lease on it.
func (g *Guard) Lock(ctx context.Context, key string, a Algorithm, o Options) (*Lease, error) {
	o, err := o.withDefaults()
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		return nil, fmt.Errorf("locker: %w", err)
	}
	w := &wait{caller: ctx, began: time.Now(), limit: o.Wait}
	if err = context.Cause(ctx); err != nil {
		return nil, w.failed(key, err)
	}
	l := &Lease{key: key, label: orElse(labelOf(ctx), o.Label), options: o, line: &g.line, algorithm: a, wait: w}
	if l, err = g.lock(l); err != nil {
		return nil, w.failed(key, err)
	}
	return l, nil
}

// LockAgain goes on waiting with the caller of a lock that was handed over by an algorithm
// that has failed since. It keeps its turn in line, and has what is left of its time. l is
// over.
func (g *Guard) LockAgain(l *Lease, a Algorithm) (next *Lease, err error) {
	w := l.wait
	w.again = true
	next = &Lease{key: l.key, label: l.label, options: l.options, line: l.line, algorithm: a, wait: w}
	if l.letGo(0) != holding { // it was lost, and its turn with it
		next, err = g.lock(next)
	} else if err = w.over(); err != nil {
		l.leave()
	} else {
		next, err = g.win(next)
	}
	if err != nil {
		return nil, w.failed(l.key, err)
	}
	return next, nil
}

// lock waits for l's turn in line and then for the lock. It returns l, or the lease that it
// was replaced by.
func (g *Guard) lock(l *Lease) (*Lease, error) {
	w, o, own := l.wait, l.options, l.algorithm
	if o.Policy == LeaseEnd {
		if holder := g.line.holder(l.key); holder.left() > w.left() {
			return nil, held(holder.token, time.Now())
		}
	}
	if err := g.line.enter(l.key, o.MaxWaiters, w, l); err != nil {
		return nil, g.explain(l.key, err)
	}
	if !l.isHanded() {
		return g.win(l)
	}
	if w.caller.Err() == nil && l.Validity() > 0 {
		return l, nil
	}
	_ = l.Unlock(w.caller) // what it returns is of no use
	if err := w.over(); err != nil {
		return nil, g.explain(l.key, err)
	}
	// The lock was lost while it was handed over. That says nothing about the next try.
	w.again = true
	return g.lock(&Lease{key: l.key, label: l.label, options: o, line: l.line, algorithm: own, wait: w})
}

// win competes with other processes, for l, whose turn in line has come.
func (g *Guard) win(l *Lease) (*Lease, error) {
	w, won, hurry := l.wait, false, false
	defer func() { // also where the algorithm panics
		if won {
			return
		}
		left := g.line.leave(l.key)
		// The caller has waited long enough: together, a quarter of Timeout is for cleaning up.
		if most := l.options.Timeout/4 - w.cleaning; most > 0 && !hurry {
			left.quit(most)
		} else {
			left.quitLater()
		}
	}()
	if err := g.take(l); err != nil {
		hurry = unanswered(err)
		if w.silent(err) {
			// Those behind would each find that out in turn, and the last one long
			// after its own time.
			g.line.dismiss(l.key, err)
		}
		return nil, g.explain(l.key, err)
	}
	won = true
	return l, nil
}

// explain adds to a mere time-out who the holder is. It is called while the key
// is still queued for.
func (g *Guard) explain(key string, err error) error {
	if err == ErrTimeout {
		return held(g.line.holder(key).token, time.Now())
	}
	return err
}

// wholeMillis rounds d up to what Redis counts in. If it were cut short there,
// Redis would end a lease before the holder does.
func wholeMillis(d time.Duration) time.Duration {
	short := d.Truncate(time.Millisecond)
	if short == d {
		return d
	}
	return max(short, short+time.Millisecond) // the sum may overflow
}
