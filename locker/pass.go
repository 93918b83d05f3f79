package locker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A lock that callers of this process wait for need not become free: it is passed
// on. Their leases are made before they wait, so that whoever passes the lock
// only fills in what it is held by.

// Algorithm returns what the lock is held by: what was given to Guard.Lock, by
// this caller or by the one whose lock was passed on to it.
func (l *Lease) Algorithm() Algorithm { return l.algorithm }

// Token returns what names this holder in the lock's key. Of a lock that was handed
// over, Redis hears with the next exchange of its algorithm.
func (l *Lease) Token() string { return l.token }

// leave gives the turn to the next in line, without the lock. Whoever has a lock has no
// place in the queue for it.
func (l *Lease) leave() { _ = l.line.leave(l.key) }

// isHanded reports whether the lock came with the turn.
func (l *Lease) isHanded() bool { return l != nil && l.token != "" }

// HandOver gives the lock to the caller of this process that has waited longest,
// at once and without telling Redis, and returns its lease, which l's algorithm is
// that of. It returns nil, and changes nothing, where nobody waits, where other
// processes are to have their turn, or where l does not hold the lock any more.
// others tells whether other processes wait, as far as is known.
//
// Redis still knows the token of l, or of one before. It is the algorithm's job
// to know that, and to bring it up to date.
func (l *Lease) HandOver(others bool) *Lease {
	l.mu.Lock()
	l.turn.others = others
	now := time.Now()
	if l.state != holding || !now.Before(l.end) || l.turn.over(now) {
		l.mu.Unlock()
		return nil
	}
	w := l.line.next(l.key)
	if w == nil {
		l.mu.Unlock()
		return nil
	}
	l.state = released
	l.timer.Stop()
	turn, end := l.turn.passed(others), l.end
	l.mu.Unlock()
	l.hand(w, w.lease.newToken(now), turn, now, end)
	return w.lease
}

// EndTurn makes Unlock release the lock, whoever waits for it in this process.
func (l *Lease) EndTurn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn.ended = true
}

// hand gives the lock and the turn to a waiter. The lock is held by token until end.
func (l *Lease) hand(w *waiter, token string, t turn, now, end time.Time) {
	next := w.lease
	if limit := now.Add(next.options.MaxHold); limit.Before(end) {
		end = limit // it may hold it for a shorter time than whoever passes it on
	}
	next.token, next.algorithm, next.turn = token, l.algorithm, t
	l.line.sees(l.key, sighting{token: token, lease: next})
	next.start(now, end)
	w.told <- nil
}

// pass gives the lock to the next in line, where there is one, and Redis its token.
// It is called when l has been let go, and returns the token that is still to be
// released, "" if the lock was passed on. After an error nobody has it.
func (l *Lease) pass(ctx context.Context) (token string, err error) {
	sent := time.Now()
	relay, ok := l.algorithm.(Relay)
	l.mu.Lock()
	t := l.turn
	l.mu.Unlock()
	if !ok || t.over(sent) {
		return l.token, nil
	}
	first := l.line.first(l.key)
	if first == nil {
		return l.token, nil
	}
	lease := first.span()
	heir := &Lease{key: l.key, token: first.newToken(sent), algorithm: l.algorithm, options: l.options}
	others, err := relay.Pass(ctx, l.key, l.token, heir.token, lease)
	if err != nil {
		if !errors.Is(err, ErrLost) && !errors.Is(err, ErrExpired) { // either may have it
			l.Sweep(l.algorithm, heir.token, l.token)
		}
		return l.token, fmt.Errorf("locker: passing %s on: %w", l.key, err)
	}
	w := l.line.next(l.key)
	if w == nil {
		return heir.token, nil // whoever waited has gone
	}
	l.hand(w, heir.token, t.passed(others), sent, sent.Add(l.algorithm.Valid(lease)))
	return "", nil
}

// Lose ends a lease whose lock its algorithm knows to be lost, or cannot know about
// any more: the holder is told, and the next in line may try.
func (l *Lease) Lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == holding {
		l.timer.Stop()
		l.loseLocked()
	}
}

// Dismiss sends everybody away who waits for the lock in this process, with err.
func (l *Lease) Dismiss(err error) { l.line.dismiss(l.key, err) }

// newToken returns a token for l.
func (l *Lease) newToken(now time.Time) string { return newToken(l.label, now) }
