package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"
)

// An Algorithm is what one kind of lock does on Redis: single tries, without
// waiting. A [Guard] makes a lock of it.
//
// All methods are safe to repeat with the same arguments, since a reply may be
// lost after Redis did the work. Errors other than the named ones wrap
// [ErrUnavailable], or end the wait as they are. Times are whole milliseconds,
// which is what Redis counts in.
type Algorithm interface {
	// Take tries to put token into key for the time of a lease, and reports
	// whether it is there now. A token that is there already counts.
	Take(ctx context.Context, key, token string, lease time.Duration) (bool, error)
	// Extend makes the lease of token end d from now. The error is [ErrExpired]
	// where the key is empty, [ErrLost] where it holds another token.
	Extend(ctx context.Context, key, token string, d time.Duration) error
	// Release empties key if it holds token, or lets it run out after a delay
	// where that is not zero. Errors as with Extend.
	Release(ctx context.Context, key, token string, after time.Duration) error
}

// A Guard makes locks of algorithms: it queues the callers of this process,
// retries, and keeps what was won. All callers that compete for a key in one
// process should use one Guard. The zero Guard is ready.
type Guard struct{ line line }

// Lock waits for key by the rules of [Locker] and returns the lease on it.
func (g *Guard) Lock(ctx context.Context, key string, a Algorithm, o Options) (*Lease, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if key == "" {
		return nil, errors.New("locker: the key is empty")
	}

	began := time.Now()
	failed := func(err error) error {
		return fmt.Errorf("locker: waited %v for %s: %w", time.Since(began).Round(time.Millisecond), key, err)
	}
	// The context that ends with the wait is made when there is a wait.
	var waiting context.Context
	var cancel context.CancelFunc = func() {}
	defer func() { cancel() }()
	wait := func() context.Context {
		if waiting == nil {
			waiting, cancel = context.WithDeadlineCause(ctx, began.Add(o.Wait), ErrTimeout)
		}
		return waiting
	}

	if err := g.line.enter(key, o.MaxWaiters, wait); err != nil {
		return nil, failed(err)
	}
	l := &Lease{key: key, token: rand.Text(), algorithm: a, options: o, leave: func() { g.line.leave(key) }}
	won := false
	defer func() { // also where the algorithm panics
		if !won {
			l.leave()
		}
	}()
	if err := l.take(ctx, wait); err != nil {
		if isTimeout(err) && errors.Is(err, ErrUnavailable) && ctx.Err() == nil {
			// Redis hangs. Those behind would each find that out in turn, and
			// the last one long after its own time.
			g.line.dismiss(key, err)
		}
		return nil, failed(err)
	}
	won = true
	return l, nil
}

// take tries until it has the lock. Where it fails, the token is not in the key,
// or will be swept out of it.
func (l *Lease) take(ctx context.Context, wait func() context.Context) error {
	lease := wholeMillis(min(l.options.Lease, l.options.MaxHold))
	for try := 0; ; try++ {
		if ended := context.Cause(ctx); ended != nil {
			return ended
		}
		sent := time.Now()
		taken, err := l.algorithm.Take(ctx, l.key, l.token, lease)
		if err == nil && taken {
			err = unusable(ctx, sent.Add(lease))
			if err == nil {
				l.start(sent, lease)
				return nil
			}
		}
		if err != nil {
			if taken || mayHaveHappened(err) {
				l.sweep(0, l.options.Timeout/4, !taken) // the caller has waited long enough
			}
			if ended := context.Cause(ctx); ended != nil && !errors.Is(err, ended) {
				err = fmt.Errorf("%w: %w", ended, err)
			}
			return err
		}
		ctx := wait()
		if pause(ctx, l.options.Backoff.Delay(try, mathrand.Float64())) != nil {
			return context.Cause(ctx)
		}
	}
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

// pause sleeps for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
