package store

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// A fence takes a session and writes it only if nobody else can have written
// it meanwhile. There are two, for locks beside the record and for others; the
// package's comment tells why.
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
// so the fence is that the record is still the one that was loaded.
type under struct{ locker locker.Locker }

func (u under) take(ctx context.Context, h *Hold) error {
	s, terms := h.store, h.terms
	terms.MaxBytes = math.MaxInt32 // without the record there is no fence
	if _, err := s.load(ctx, h.id, terms); err != nil && !unusable(err) {
		return fmt.Errorf("%s: %w", h.id, err) // an unknown id takes no lock
	}

	if h.terms.Label != "" {
		ctx = locker.WithLabel(ctx, h.terms.Label)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, h.terms.LockWait, ErrTimeout)
	defer cancel()
	lease, err := u.locker.Lock(waiting, s.lockKey(h.id))
	if err != nil {
		return waitError(waiting, err)
	}
	raw, err := s.load(ctx, h.id, terms)
	if err != nil && !unusable(err) {
		_ = lease.Unlock(context.WithoutCancel(ctx)) // nothing was read under it
		return fmt.Errorf("%s: %w", h.id, err)
	}
	h.lease, h.stamp, h.raw = lease, rand.Text(), raw
	if err == nil && len(raw) > h.terms.MaxBytes {
		err = fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, len(raw))
	}
	if err == nil {
		h.Record, err = parseRecord(raw)
	}
	return err
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
	loaded := "foreign" // to replace.lua: another Redis type
	if h.raw != nil {
		sum := sha1.Sum(h.raw) // names the record; Redis can compute it, too
		loaded = hex.EncodeToString(sum[:])
	}
	n, err := redis.Int(h.store.client.Eval(ctx, replaceScript, locker.Keys{h.store.recordKey(h.id)},
		w.stamp, w.record, w.ttl, loaded))
	u.release(ctx, h) // the fence has decided; the lock has no say in it
	if err == nil && n != 1 {
		err = ErrLost
	}
	return err
}

func (u under) bury(ctx context.Context, h *Hold, w write) error { return u.save(ctx, h, Record{}, w) }

func (u under) touch(ctx context.Context, h *Hold, _ int64) error {
	err := h.lease.Unlock(ctx)
	if isLost(err) {
		return nil
	}
	return err
}

func (u under) release(ctx context.Context, h *Hold) { _ = h.lease.Unlock(ctx) }
