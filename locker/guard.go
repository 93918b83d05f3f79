package locker

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
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
	defer w.stop()
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
	if err := g.line.enter(key, o.MaxWaiters, w.context); err != nil {
		return nil, g.explain(key, err)
	}
	l := &Lease{key: key, algorithm: a, options: o, leave: func() { g.line.leave(key) }}
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

// take tries until the lease has the lock. Where it fails, the token does not
// hold it, or will be swept out.
func (g *Guard) take(w *wait, l *Lease) error {
	lease := wholeMillis(min(l.options.Lease, l.options.MaxHold))
	doubt := false
	for try := 0; ; try++ {
		sent := time.Now()
		if !doubt { // a token tells since when, so each try has its own while it can
			l.token = newToken(w.caller, sent)
		}
		found, err := l.algorithm.Take(w.caller, l.key, l.token, lease)
		if err == nil && found.Taken {
			end := sent.Add(l.algorithm.Valid(lease))
			if err = unusable(w.caller, end); err == nil {
				g.line.sees(l.key, sighting{token: l.token, lease: l})
				l.start(sent, end) // from here on it may leave the line by itself
				return nil
			}
		}
		doubt = doubt || found.Doubt || mayHaveHappened(err)
		if err == nil {
			err = g.rest(w, l, try, found)
		}
		if err == nil {
			continue
		}
		if found.Taken || doubt {
			l.sweep(0, l.options.Timeout/4, doubt) // the caller has waited long enough
		}
		if ended := context.Cause(w.caller); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return err
	}
}

// rest pauses after a try that found the lock held. An error ends the wait.
func (g *Guard) rest(w *wait, l *Lease, try int, found Attempt) error {
	g.line.sees(l.key, sighting{token: found.Holder, end: time.Now().Add(found.Left)})
	d, worth := l.options.next(try, found.Left, w.left(), mathrand.Float64())
	if !worth {
		return ErrTimeout
	}
	ctx := w.context()
	_ = pause(ctx, d) // the context tells why it ended
	return context.Cause(ctx)
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

// sweep removes a token that nobody owns. Where doubt is set, the reply to a Take
// was lost, and the lock may have been taken. The command, or a repetition of it,
// may even be on its way still, and reach Redis after a sweep that found nothing,
// or found what another repetition had left. So the token is looked for again,
// at growing intervals, for the time of one lease. A lock that is taken still
// later blocks others for one lease, like that of a killed holder.
//
// It runs once in the caller and then from timers, so no goroutine waits for
// it, and it ends by itself.
func (l *Lease) sweep(age, timeout time.Duration, doubt bool) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := l.algorithm.Release(ctx, l.key, l.token, 0)
	answered := err == nil || errors.Is(err, ErrExpired) || errors.Is(err, ErrLost)
	if answered && !doubt || age >= l.options.Lease {
		return
	}
	next := max(20*time.Millisecond, age)
	time.AfterFunc(next, func() { l.sweep(age+next, l.options.Timeout, doubt) })
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
