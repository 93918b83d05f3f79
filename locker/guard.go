package locker

import (
	"context"
	"errors"
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
	w := wait{caller: ctx, began: time.Now(), limit: o.Wait}
	l, err := g.lock(&w, key, a, o)
	if err == nil {
		return l, nil
	}
	waited := time.Since(w.began).Round(time.Millisecond)
	return nil, fmt.Errorf("locker: waited %v for %s: %w", waited, key, err)
}

func (g *Guard) lock(w *wait, key string, a Algorithm, o Options) (*Lease, error) {
	if ended := context.Cause(w.caller); ended != nil {
		return nil, ended
	}
	if o.Policy == LeaseEnd {
		if holder := g.line.holder(key); holder.left() > w.left() {
			return nil, held(holder.token, time.Now())
		}
	}
	l := &Lease{key: key, label: orElse(labelOf(w.caller), o.Label), options: o, line: &g.line, algorithm: a}
	if err := g.line.enter(key, o.MaxWaiters, w, l); err != nil {
		return nil, g.explain(key, err)
	}
	if l.isHanded() {
		if w.caller.Err() == nil && l.Validity() > 0 {
			return l, nil
		}
		_ = l.Unlock(w.caller) // what it returns is of no use
		if err := w.over(); err != nil {
			return nil, g.explain(key, err)
		}
		// The lock was lost while it was handed over. That is no verdict on the next try.
		w.again = true
		return g.lock(w, key, a, o)
	}
	won := false
	defer func() { // also where the algorithm panics
		if !won {
			l.leave()
		}
	}()
	if err := g.take(w, l); err != nil {
		if isTimeout(err) && errors.Is(err, ErrUnavailable) && w.caller.Err() == nil {
			// Redis hangs. Those behind would each find that out in turn, and
			// the last one long after its own time.
			g.line.dismiss(key, err)
		}
		return nil, g.explain(key, err)
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
