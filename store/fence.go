package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/a2139e8d/latchkey/locker"
)

// A fence takes a session, keeps it in use while it is held, and writes it only if nobody
// else has written it meanwhile. There are two, for locks beside the record and for
// others; the package's comment tells why.
type fence interface {
	// take sets h.lease, h.stamp and h.Record. A record that is there but cannot
	// be used is an error although h.lease is set.
	take(ctx context.Context, h *Hold) error
	// save replaces the record and gives the hold back, or returns ErrLost.
	save(ctx context.Context, h *Hold, record Record, w write) error
	// bury is save for a tombstone.
	bury(ctx context.Context, h *Hold, w write) error
	// touch gives the hold back, having put the idle time-out off by ttl ms. A
	// lock that was lost is an error only where what was read may be wrong.
	touch(ctx context.Context, h *Hold, ttl int64) error
	// release gives the hold back. If that fails, the lease ends by itself; there
	// is nothing that the caller could do about it.
	release(ctx context.Context, h *Hold)
	// abandon is release after an exchange that failed with err: if Redis has not
	// answered that one, the caller does not wait for another.
	abandon(ctx context.Context, h *Hold, err error)
}

// A write is what a hold leaves in Redis.
type write struct {
	record []byte // the stored form
	stamp  string // which is part of it
	ttl    int64  // ms
}

// unusable reports whether err says that a record is there, but is no good.
func unusable(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTooLarge)
}

func isLost(err error) bool { return errors.Is(err, ErrLost) || errors.Is(err, locker.ErrExpired) }

// under is any other lock. It knows nothing of the record and may be elsewhere,
// so it neither fences a write nor keeps the record in use.
type under struct{ locker locker.Locker }

func (u under) take(ctx context.Context, h *Hold) error {
	s, terms := h.store, h.terms
	terms.MaxBytes = math.MaxInt32 // without the record there is no fence
	if _, err := s.load(ctx, h.id, terms); err != nil && !unusable(err) {
		return fmt.Errorf("%s: %w", h.id, err) // an unknown id takes no lock
	}

	h.inUse = s.keepInUse(ctx, h)
	if err := u.lock(ctx, h); err != nil {
		h.inUse.stop()
		return err
	}
	h.stamp = rand.Text()
	raw, err := s.load(ctx, h.id, terms)
	if err != nil && !unusable(err) {
		u.abandon(ctx, h, err) // nothing was read under it
		h.lease = nil
		return fmt.Errorf("%s: %w", h.id, err)
	}
	if h.base = foreignName; raw != nil {
		h.base = recordName(raw)
	}
	if err == nil && len(raw) > h.terms.MaxBytes {
		err = fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, len(raw))
	}
	if err == nil {
		h.Record, err = parseRecord(raw)
	}
	if err == nil && h.terms.expired(h.Record.Created, time.Now().Add(h.terms.TTL/3)) {
		h.inUse.soon() // Redis has it for no longer than its lifetime
	}
	return err
}

// lock sets h.lease.
func (u under) lock(ctx context.Context, h *Hold) error {
	if h.terms.Label != "" {
		ctx = locker.WithLabel(ctx, h.terms.Label)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, h.terms.LockWait, ErrTimeout)
	defer cancel()
	lease, err := u.locker.Lock(waiting, h.store.lockKey(h.id))
	if err != nil {
		return waitError(waiting, err)
	}
	h.lease = lease
	return nil
}

// waitError returns the error of a Lock, and sees to it that it wraps the cause
// of the wait's end if that is over. It may have ended in the middle of an
// exchange with Redis, whose error says nothing of a wait.
func waitError(waiting context.Context, err error) error {
	if end, _ := waiting.Deadline(); !time.Now().Before(end) {
		<-waiting.Done() // the context's timer may be a little late
	}
	if cause := context.Cause(waiting); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (u under) save(ctx context.Context, h *Hold, _ Record, w write) error {
	_, err := committed(h.store.client.Eval(ctx, replaceScript, locker.Keys{h.store.recordKey(h.id)},
		h.base, w.record, w.ttl))
	u.abandon(ctx, h, err) // the fence has decided; the lock has no say in it
	return err
}

func (u under) bury(ctx context.Context, h *Hold, w write) error { return u.save(ctx, h, Record{}, w) }

func (u under) touch(ctx context.Context, h *Hold, _ int64) error {
	h.inUse.stop()
	err := h.lease.Unlock(ctx)
	if isLost(err) {
		return nil
	}
	return err
}

func (u under) release(ctx context.Context, h *Hold) {
	h.inUse.stop()
	_ = h.lease.Unlock(ctx)
}

func (u under) abandon(ctx context.Context, h *Hold, err error) {
	if !isSilence(err) {
		u.release(ctx, h)
		return
	}
	ctx, lease := context.WithoutCancel(ctx), h.lease
	h.inUse.stop()
	lease.Dismiss(err)
	time.AfterFunc(0, func() { _ = lease.Unlock(ctx) })
}
