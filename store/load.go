package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
)

// Load reads a record without a lock and extends its idle timeout, in one exchange. It sees what
// was last committed, also while another request holds the session. The error wraps
// [ErrNotFound], [ErrGone], [ErrCorrupt], [ErrTooLarge] or [ErrUnavailable].
//
// To look at a session without using it, leave the timeouts of t zero: with no TTL none is
// extended, and with no Lifetime the session ends when its record does.
func (s *Store) Load(ctx context.Context, id string, t Terms) (Record, error) {
	t.MaxBytes = cmp.Or(t.MaxBytes, DefaultMaxBytes)
	t.Lifetime = cmp.Or(t.Lifetime, math.MaxInt64)
	text, err := s.load(ctx, id, t)
	var record Record
	if err == nil {
		record, err = parseRecord(text)
	}
	return record, failed("loading", id, err)
}

// load returns the record as it is stored.
func (s *Store) load(ctx context.Context, id string, t Terms) ([]byte, error) {
	if s.closed.Load() {
		return nil, lease.ErrClosed
	}
	reply, err := s.runner.Run(ctx, loadScript, s.keys(id)[:1],
		t.outlived(time.Now()), t.TTL.Milliseconds(), t.MaxBytes)
	if err != nil {
		return nil, err
	}
	return found(reply)
}

// Create stores the first record of a new id, in one exchange and without a lock: nobody else
// knows the id yet. The error wraps [ErrTooLarge] or [ErrUnavailable].
func (s *Store) Create(ctx context.Context, id string, data []byte, t Terms) error {
	return failed("creating", id, s.create(ctx, id, lease.NewID(), time.Now(), data, t.withDefaults()))
}

func (s *Store) create(ctx context.Context, id, token string, created time.Time, data []byte, t Terms) error {
	if s.closed.Load() {
		return lease.ErrClosed
	}
	record := Record{Data: data, Created: created, name: token}
	if err := t.fits(record); err != nil {
		return err
	}
	reply, err := s.runner.Run(ctx, createScript, s.keys(id)[:1], token, record.text(), t.expiry(created, time.Now()))
	if err != nil {
		return err
	}
	if n, ok := reply.Int(); !ok || n != 1 {
		return fmt.Errorf("%w: the new id exists already", ErrCorrupt)
	}
	return nil
}

// unusable reports whether err says that a record is there, but cannot be used.
func unusable(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTooLarge)
}
