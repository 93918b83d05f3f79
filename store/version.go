package store

import (
	"cmp"
	"context"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// How the holds of a tenure end, and what becomes of the versions that they make.

// save implements fence.
func (t *tenure) save(ctx context.Context, h *Hold, record Record, w write) error {
	return t.end(ctx, h, func() {
		t.record, t.size, t.write, t.read = record, len(w.record), w, nil
		t.written = t.newest
	})
}

// bury implements fence. Nobody joins a session that has ended.
func (t *tenure) bury(ctx context.Context, h *Hold, w write) error {
	h.lease.EndTurn()
	return t.save(ctx, h, Record{}, w)
}

// touch implements fence. Whoever took the lock has read what was stored then, and
// nothing can be wrong with that afterwards. Others have read what is known to be
// stored, or current, only if the lock was held until now.
func (t *tenure) touch(ctx context.Context, h *Hold, ttl int64) error {
	err := t.end(ctx, h, func() { t.write.ttl = ttl })
	if isLost(err) && !h.joined {
		return nil
	}
	return err
}

// release implements fence.
func (t *tenure) release(ctx context.Context, h *Hold) {
	h.over = true
	t.giveUp(ctx, h.lease)
}

// abandon implements fence.
func (t *tenure) abandon(ctx context.Context, h *Hold, err error) {
	t.mu.Lock()
	if t.err == nil && isSilence(err) {
		t.fail(err, "")
	}
	t.mu.Unlock()
	t.release(ctx, h)
}

// giveUp ends a hold without a version.
func (t *tenure) giveUp(ctx context.Context, lease *locker.Lease) {
	t.mu.Lock()
	handed := t.handOver(lease)
	t.mu.Unlock()
	if !handed {
		_ = lease.Unlock(ctx) // if it fails, the lease ends by itself
	}
}

// end ends a hold with a version of its own, and returns when that is stored.
func (t *tenure) end(ctx context.Context, h *Hold, change func()) error {
	if h.over {
		return ErrLost // it was given back before
	}
	h.over = true
	t.mu.Lock()
	if t.err == nil && h.lease.Validity() == 0 {
		// What is under way stores what others have ended, and only then is it known which
		// token Redis has.
		if t.settled() == nil {
			t.fail(ErrLost, "") // it has been told so, or would be in a moment
		}
	}
	if t.err != nil {
		defer t.mu.Unlock()
		return t.err // the lease has been given up
	}
	t.newest++
	version := t.newest
	change()
	// As one: a commit in between would give the lock to this hold, for longer than the
	// next may have it.
	handed := t.handOver(h.lease)
	t.mu.Unlock()
	if handed {
		return t.flush(ctx, version)
	}
	_ = h.lease.Unlock(ctx) // calls Pass or Release
	return t.outcome(version)
}

// How far a process goes on before it hears from Redis again: by versions that are not
// stored yet, which a failed commit would take with it, and by time, since others may
// have begun to wait.
const (
	maxAhead = 128
	maxAlone = 10 * time.Millisecond
)

// handOver lets the next request in line hold the session, if there is one. It is called
// with mu held.
func (t *tenure) handOver(lease *locker.Lease) bool {
	if t.read != nil || t.err != nil { // nobody could use it
		lease.EndTurn()
	}
	if t.newest-t.stored >= maxAhead || time.Since(t.heard) >= t.store.alone || lease.Validity() < lease.Span()*2/3 {
		return false // Unlock passes it on when all is stored, for a whole lease
	}
	next := lease.HandOver(t.others)
	if next == nil {
		return false
	}
	t.lease = next
	return true
}

// flush sends what there is, unless somebody else does, until a version is stored.
// It is sent for others, too, so it does not end with ctx.
func (t *tenure) flush(ctx context.Context, version int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.stored < version && t.err == nil {
		if t.sending {
			t.waitForOne()
		} else {
			t.send(context.WithoutCancel(ctx), t.lease.Token(), t.lease.Span())
		}
	}
	return t.outcomeLocked(version)
}

func (t *tenure) outcome(version int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.outcomeLocked(version)
}

func (t *tenure) outcomeLocked(version int) error {
	if t.stored >= version {
		return nil
	}
	return cmp.Or(t.err, ErrLost)
}
