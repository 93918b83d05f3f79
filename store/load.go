package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/a2139e8d/latchkey/locker"
	"github.com/gomodule/redigo/redis"
)

// Load reads a record without a lock and puts its idle time-out off, in one
// exchange. It sees what was last committed, also while another request holds
// the session. The error wraps [ErrNotFound], [ErrGone], [ErrCorrupt],
// [ErrTooLarge] or [ErrUnavailable].
func (s *Store) Load(ctx context.Context, id string, t Terms) (Record, error) {
	raw, err := s.load(ctx, id, t.withDefaults())
	if err != nil {
		return Record{}, fmt.Errorf("store: loading %s: %w", id, err)
	}
	record, err := parseRecord(raw)
	if err != nil {
		return Record{}, fmt.Errorf("store: loading %s: %w", id, err)
	}
	return record, nil
}

// load returns the record as it is stored.
func (s *Store) load(ctx context.Context, id string, t Terms) ([]byte, error) {
	return found(s.client.Eval(ctx, loadScript, locker.Keys{s.recordKey(id)},
		t.outlived(time.Now()), s.ttl.of(t.TTL.Milliseconds()), s.maxBytes.of(int64(t.MaxBytes))))
}

// Create stores the first record of a new id, in one exchange and without a
// lock: nobody else knows the id yet. The error wraps [ErrTooLarge] or
// [ErrUnavailable].
func (s *Store) Create(ctx context.Context, id string, data []byte, t Terms) error {
	if err := s.create(ctx, id, rand.Text(), time.Now(), data, t.withDefaults()); err != nil {
		return fmt.Errorf("store: creating %s: %w", id, err)
	}
	return nil
}

func (s *Store) create(ctx context.Context, id, token string, created time.Time, data []byte, t Terms) error {
	record, err := t.record(token, created, data)
	if err != nil {
		return err
	}
	n, err := redis.Int(s.client.Eval(ctx, createScript, locker.Keys{s.recordKey(id)},
		token, record, t.expiry(created, time.Now())))
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: the new id exists already", ErrCorrupt)
	}
	return err
}

// record returns the stored form, unless it is too large.
func (t Terms) record(token string, created time.Time, data []byte) ([]byte, error) {
	record := formatRecord(token, created, data)
	if len(record) > t.MaxBytes {
		return nil, fmt.Errorf("%w: the record would have %d bytes, MaxBytes is %d", ErrTooLarge, len(record), t.MaxBytes)
	}
	return record, nil
}
