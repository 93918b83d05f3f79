package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// The exchanges of a tenure with Redis: the methods of locker.Relay that are not
// those of the plain lock. There is one exchange at a time, so that it is always
// known which token Redis has.

// Take implements [locker.Algorithm]: it also reads the record.
func (t *tenure) Take(ctx context.Context, key, token string, lease time.Duration) (locker.Attempt, error) {
	return t.Queue(ctx, key, token, "", lease)
}

// Queue implements [locker.Relay].
func (t *tenure) Queue(ctx context.Context, _, token, place string, lease time.Duration) (locker.Attempt, error) {
	text, others, found, err := taken(t.store.client.Eval(ctx, takeScript, t.keys, token,
		t.store.lease.of(lease.Milliseconds()), t.store.maxBytes.of(int64(t.terms.MaxBytes)), t.terms.outlived(time.Now()), place))
	if found.Taken {
		t.raw, t.read, t.span, t.others = text, err, lease, others
		err = nil
	}
	return found, err
}

// Pass implements [locker.Relay]: with what is not stored yet.
func (t *tenure) Pass(ctx context.Context, _, _, to string, lease time.Duration) (others bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait()
	t.span = max(t.span, lease)
	if t.err == nil {
		t.send(ctx, to)
	}
	return t.others, t.err
}

// Release implements [locker.Algorithm]: with what is not stored yet. It is also
// called for tokens that came to nothing.
func (t *tenure) Release(ctx context.Context, key, token string, _ time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait()
	if t.token == "" || t.err != nil {
		return t.forget(ctx, key, token)
	}
	t.send(ctx, "")
	return t.err
}

// Extend implements [locker.Algorithm].
func (t *tenure) Extend(ctx context.Context, key, token string, d time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wait()
	if t.err != nil {
		return t.err
	}
	t.span = max(t.span, d)
	token = cmp.Or(t.token, token) // it may be called before the first hold has begun
	t.begins()
	defer t.ends()
	return t.Relay.Extend(ctx, key, token, d)
}

// send makes all versions up to the newest stored, and to the next holder; "" frees
// the lock. It is called with mu held, when no exchange is under way.
func (t *tenure) send(ctx context.Context, to string) {
	version := t.newest
	var record, ttl any = "", ""
	if version > t.stored {
		ttl = t.store.ttl.of(t.write.ttl)
	}
	if t.written > t.stored {
		record = t.write.record
	}
	if version > t.stored && t.write.stamp == "" {
		t.write.stamp = recordStamp(t.raw) // only read, so far
	}
	others, err := t.commit(ctx, to, ttl, record)
	if err != nil {
		t.err, t.next = err, to
		t.lease.Lose() // whoever holds the session now has built on what is void
		return
	}
	t.token, t.others, t.stored, t.heard = to, others, version, time.Now()
}

// wait waits until no exchange is under way. It is called with mu held.
func (t *tenure) wait() {
	for t.sending {
		t.idle.Wait()
	}
}

// commit runs commit.lua. It is called with mu held, and gives it up meanwhile.
func (t *tenure) commit(ctx context.Context, to string, ttl, record any) (others bool, _ error) {
	token, stamp, lease := t.token, t.write.stamp, t.store.lease.of(t.span.Milliseconds())
	t.begins()
	defer t.ends()
	return committed(t.store.client.Eval(ctx, commitScript, t.keys, token, to, lease, ttl, record, stamp))
}

// begins gives mu up for the time of an exchange, and ends takes it again.
func (t *tenure) begins() {
	t.sending = true
	t.mu.Unlock()
}

func (t *tenure) ends() {
	t.mu.Lock()
	t.sending = false
	t.idle.Broadcast()
}

// forget frees the lock if it has the token, or one that may be there since the last
// exchange failed. It is called with mu held.
func (t *tenure) forget(ctx context.Context, key, token string) error {
	var errs []error
	tokens := []string{token, t.token, t.next}
	t.begins()
	defer t.ends()
	for i, token := range tokens {
		if token != "" && !slices.Contains(tokens[:i], token) {
			errs = append(errs, t.Relay.Release(ctx, key, token, 0))
		}
	}
	for _, err := range errs {
		if err == nil || !isLost(err) {
			return err // freed, or not known
		}
	}
	return errs[0]
}
