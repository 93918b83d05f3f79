package store

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// The exchanges of a tenure with Redis: the methods of locker.Relay that are not
// those of the plain lock. There is one exchange at a time, so that it is always
// known which token and which record Redis has.

// Take implements [locker.Algorithm]: it also reads the record.
func (t *tenure) Take(ctx context.Context, key, token string, lease time.Duration) (locker.Attempt, error) {
	return t.Queue(ctx, key, token, "", lease)
}

// Queue implements [locker.Relay].
func (t *tenure) Queue(ctx context.Context, _, token, place string, lease time.Duration) (locker.Attempt, error) {
	s := t.store
	found, err := taken(s.client.Eval(ctx, takeScript, t.keys, token, s.lease.of(lease.Milliseconds()),
		s.maxBytes.of(int64(t.terms.MaxBytes)), t.terms.outlived(time.Now()), place, s.ttl.of(t.terms.TTL.Milliseconds())))
	if found.Taken {
		t.raw, t.base, t.read, t.others = found.text, found.name, err, found.others
		err = nil
	}
	return found.Attempt, err
}

// Pass implements [locker.Relay]: with what is not stored yet.
func (t *tenure) Pass(ctx context.Context, _, _, to string, lease time.Duration) (others bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.settled() == nil {
		t.send(ctx, to, lease)
	}
	return t.others, t.err
}

// Release implements [locker.Algorithm]: with what is not stored yet. It is also
// called for tokens that came to nothing before any hold has begun.
func (t *tenure) Release(ctx context.Context, key, token string, after time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == "" {
		return t.Relay.Release(ctx, key, token, after)
	}
	if t.settled() == nil {
		t.send(ctx, "", 0)
	}
	return t.err
}

// Extend implements [locker.Algorithm]: the record outlasts the lock. Whoever holds a
// record that another has written learns that it is lost.
func (t *tenure) Extend(ctx context.Context, _, token string, d time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.sending && t.err == nil { // an extension that comes late is no reason to fail
		t.idle.Wait()
	}
	if t.err != nil {
		return t.err
	}
	token = cmp.Or(t.token, token) // it may be called before the first hold has begun
	keys, base := t.keys[:2], t.base
	begun := t.begins()
	state, err := redis.Ints(t.store.client.Eval(ctx, extendScript, keys, token, max(1, d.Milliseconds()), base))
	t.ends(begun, err)
	switch {
	case err != nil:
		return err
	case len(state) != 1 || state[0] < -1 || state[0] > 1:
		return unexpected(state)
	case state[0] == 0:
		if t.lease != nil {
			t.fail(ErrLost, "")
		}
		return ErrLost
	case state[0] < 0:
		return locker.ErrExpired
	}
	return nil
}

// send makes all versions up to the newest stored, and gives the lock to the next holder
// for a lease; to "" frees it. It is called with mu held, when no exchange is under way.
func (t *tenure) send(ctx context.Context, to string, lease time.Duration) {
	version := t.newest
	var record, ttl any = "", ""
	if version > 0 || t.read == nil { // what cannot be read is left as it is
		ttl = t.store.ttl.of(t.timeToLive(to, lease))
	}
	token, base, next := t.token, t.base, t.base
	if t.written > t.stored {
		record, next = t.write.record, t.write.stamp
	}
	ms := t.store.lease.of(lease.Milliseconds())
	begun := t.begins()
	others, err := committed(t.store.client.Eval(ctx, commitScript, t.keys, token, to, ms, ttl, base, record))
	t.ends(begun, err)
	if err != nil {
		t.fail(err, to)
		return
	}
	t.token, t.base, t.others, t.stored, t.heard = to, next, others, version, time.Now()
	if t.err != nil { // the tenure was given up meanwhile, and its next token is nobody's
		t.lease.Sweep(t.Relay, to)
	}
}

// outlast is by how much a record outlasts its lock, as the scripts see to it, too.
const outlast = 2 * time.Second

// timeToLive is that of the record after a commit, in ms: what the last version wants, or
// the take, since somebody has come for the session; but while it is held, no less than
// its lock.
func (t *tenure) timeToLive(to string, lease time.Duration) int64 {
	ttl := t.write.ttl
	if t.newest == 0 {
		ttl = t.terms.expiry(t.record.Created, time.Now())
	}
	if to != "" {
		ttl = max(ttl, (lease + outlast).Milliseconds())
	}
	return ttl
}

// fail ends the tenure: what is not stored is void. The lock may be left to the token that
// Redis has, or to the next one, so both are swept in the background: nobody waits for
// another exchange after one that has failed. It is called with mu held. A commit that is
// under way may still succeed, so it is waited for before whoever it serves is told ErrLost,
// which says that nothing was stored.
func (t *tenure) fail(err error, next string) {
	t.err = err
	if isSilence(err) {
		t.lease.Dismiss(err) // before Lose, which gives the turn to the first of them
	}
	t.lease.Lose() // whoever holds the session now has built on what is void
	t.lease.Sweep(t.Relay, t.token, next)
}

// settled waits until no exchange is under way, unless the tenure has failed, and returns
// why it has. It is called with mu held.
func (t *tenure) settled() error {
	for t.sending && t.err == nil {
		t.waitForOne()
	}
	return t.err
}

// waitForOne waits until an exchange is over. Whoever has waited for one that Redis has not
// answered does not wait for another one as well. It is called with mu held, while an
// exchange is under way.
func (t *tenure) waitForOne() {
	t.idle.Wait()
	if !t.sending && t.err == nil && t.silence != nil {
		t.fail(t.silence, "")
	}
}

// begins gives mu up for the time of an exchange, and ends takes it again.
func (t *tenure) begins() (now time.Time) {
	t.sending = true
	t.mu.Unlock()
	return time.Now()
}

func (t *tenure) ends(begun time.Time, err error) {
	t.mu.Lock()
	t.sending, t.silence = false, nil
	// An extension is not waited for beyond the end of its lease. What took less than a
	// quarter of Timeout leaves time for another one.
	if isSilence(err) && time.Since(begun) >= t.store.options.Timeout/4 {
		t.silence = err
	}
	t.idle.Broadcast()
}

// isSilence reports whether err says that Redis has not answered in time.
func isSilence(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
