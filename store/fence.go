package store

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// A fence takes a session and writes it only if nobody else can have written
// it meanwhile. There are two, for locks beside the record and for others; the
// package's comment tells why.
type fence interface {
	// take sets h.lease, h.stamp and h.raw. A record that is there but cannot
	// be used is an error although h.lease is set.
	take(ctx context.Context, h *Hold) error
	// write replaces the record and releases the lock, or returns ErrLost.
	write(ctx context.Context, h *Hold, record []byte, ttl int64) error
	// touch releases the lock, having put the idle time-out off.
	touch(ctx context.Context, h *Hold) error
}

// unusable reports whether err says that a record is there, but is no good.
func unusable(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTooLarge)
}

// beside is the spin lock beside the record: an algorithm for package locker
// that reads the record as it takes the lock, and writes it as it releases it.
// So taking and giving back are one exchange each, and the fence is the token.
type beside struct {
	locker.Algorithm // the plain spin lock: Extend, and Release without more

	hold    *Hold
	read    error // what take.lua said of a record that cannot be used
	last    *locker.Script
	lastArg []any
	done    error // what became of last
}

func (b *beside) take(ctx context.Context, h *Hold) error {
	s := h.store
	b.hold, b.Algorithm = h, s.spin
	lease, err := s.guard.Lock(ctx, s.lockKey(h.id), b, s.lock(h.terms))
	if err != nil {
		return err
	}
	h.lease = lease
	return b.read
}

// Take implements [locker.Algorithm].
func (b *beside) Take(ctx context.Context, key, token string, lease time.Duration) (locker.Attempt, error) {
	h := b.hold
	text, busy, err := found(h.store.client.Eval(ctx, takeScript, []string{h.store.recordKey(h.id), key},
		token, lease.Milliseconds(), h.terms.MaxBytes, time.Now().UnixMilli(), h.terms.Lifetime.Milliseconds()))
	switch {
	case busy:
		return locker.Attempt{Holder: string(text)}, nil
	case err != nil && !unusable(err):
		return locker.Attempt{}, err
	}
	stamp, _, _ := strings.Cut(token, " ") // the rest tells who the holder is
	h.raw, h.stamp, b.read = text, stamp, err
	return locker.Attempt{Taken: true}, nil
}

func (b *beside) write(ctx context.Context, h *Hold, record []byte, ttl int64) error {
	return b.giveBack(ctx, h, commitScript, record, ttl)
}

func (b *beside) touch(ctx context.Context, h *Hold) error {
	return b.giveBack(ctx, h, touchScript, h.terms.expiry(h.Record.Created, time.Now()))
}

// giveBack makes the lease run a script instead of a plain release. Only what
// the script found counts: the lease may believe itself lost while its token is
// still in the lock, and then nobody else can have had it.
func (b *beside) giveBack(ctx context.Context, h *Hold, s *locker.Script, args ...any) error {
	b.last, b.lastArg, b.done = s, args, ErrLost
	_ = h.lease.Unlock(ctx) // says what b.done says, or less
	return b.done
}

// Release implements [locker.Algorithm].
func (b *beside) Release(ctx context.Context, key, token string, after time.Duration) error {
	if b.last == nil {
		return b.Algorithm.Release(ctx, key, token, after)
	}
	keys := []string{b.hold.store.recordKey(b.hold.id), key}
	n, err := redis.Int(b.hold.store.client.Eval(ctx, b.last, keys, append([]any{token}, b.lastArg...)...))
	if err == nil && n != 1 {
		err = ErrLost
	}
	b.done = err
	return err
}

// under is any other lock. It knows nothing of the record and may be elsewhere,
// so the fence is that the record is still the one that was loaded.
type under struct{ locker locker.Locker }

func (u under) take(ctx context.Context, h *Hold) error {
	s, terms := h.store, h.terms
	terms.MaxBytes = math.MaxInt32 // without the record there is no fence
	if _, err := s.load(ctx, h.id, terms); err != nil && !unusable(err) {
		return fmt.Errorf("%s: %w", h.id, err) // an unknown id takes no lock
	}

	waiting, cancel := context.WithTimeoutCause(ctx, h.terms.LockWait, ErrTimeout)
	defer cancel()
	lease, err := u.locker.Lock(waiting, s.lockKey(h.id))
	if err != nil {
		return waitError(waiting, err)
	}
	h.raw, err = s.load(ctx, h.id, terms)
	if err != nil && !unusable(err) {
		_ = lease.Unlock(context.WithoutCancel(ctx)) // nothing was read under it
		return fmt.Errorf("%s: %w", h.id, err)
	}
	h.lease, h.stamp = lease, rand.Text()
	if err == nil && len(h.raw) > h.terms.MaxBytes {
		err = fmt.Errorf("%w: the stored record has %d bytes", ErrTooLarge, len(h.raw))
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

func (u under) write(ctx context.Context, h *Hold, record []byte, ttl int64) error {
	loaded := "foreign" // to replace.lua: another Redis type
	if h.raw != nil {
		sum := sha1.Sum(h.raw) // names the record; Redis can compute it, too
		loaded = hex.EncodeToString(sum[:])
	}
	n, err := redis.Int(h.store.client.Eval(ctx, replaceScript, []string{h.store.recordKey(h.id)},
		h.stamp, record, ttl, loaded))
	_ = h.lease.Unlock(ctx) // the fence has decided; the lock has no say in it
	if err == nil && n != 1 {
		err = ErrLost
	}
	return err
}

func (u under) touch(ctx context.Context, h *Hold) error {
	return h.lease.Unlock(ctx)
}
