package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker"
	"github.com/a2139e8d/latchkey/locker/transport"
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

// # Reading without a script
//
// A script costs Redis three times as much as the commands in it. So what is sent first is
//
//	PTTL record
//	PEXPIRE record ttl GT
//	PING number
//	GET record
//
// in one write. GT: a session that is held may have longer. PING returns the number of the call
// just ahead of the record, so that no other call's reply is taken for it. PEXPIRE is refused by a
// replica, which may have an old record, and changes nothing where the timeout is not to be put off.
//
// Whatever is not as it nearly always is goes to load.lua, which says what it means. It also takes
// back what PEXPIRE should not have done, since nobody knew: a tombstone was put off, or a record
// beyond its lifetime, or what is none. PTTL has said how long it had, and it keeps that, or what is
// left of its lifetime. (If that reply is lost, it stays put off.) A record that may have been taken in between keeps enough for a holder next
// to it, until that extends its lease. (With a Locker elsewhere, whose holders put the record off
// every TTL/3, one that is held beyond its lifetime may run out if it is read at its very end.)

// load returns the record as it is stored.
func (s *Store) load(ctx context.Context, id string, t Terms) ([]byte, error) {
	if s.closed.Load() {
		return nil, lease.ErrClosed
	}
	begun, keys := time.Now(), scripting.Keys{s.recordKey(id)}
	text, had, err := s.loadPlainly(ctx, keys, t, begun)
	if text != nil || err != nil && (!scripting.Ambiguous(err) || scripting.Unanswered(err)) {
		return text, err
	}
	// Both together take no longer than one exchange may.
	ctx, cancel := context.WithDeadline(ctx, begun.Add(s.options.Timeout))
	defer cancel()
	reply, err := s.runner.Run(ctx, loadScript, keys, t.outlived(time.Now()), t.TTL.Milliseconds(), t.MaxBytes, had,
		(cmp.Or(s.options.Lease, locker.DefaultLease) + outlast).Milliseconds())
	if err != nil {
		return nil, err
	}
	return found(reply)
}

// loadPlainly is load without a script. If it returns neither a record nor an error, load.lua must
// say what is to be made of it. had is the time to live in ms that there was before, or 0.
func (s *Store) loadPlainly(ctx context.Context, keys scripting.Keys, t Terms, now time.Time) (text []byte, had int64, _ error) {
	ttl := t.TTL.Milliseconds()
	fixed := t.TTL >= t.Lifetime // the end is: it is only put off where others had other terms
	if fixed {
		ttl = 0 // changes nothing: what would expire now does not have longer
	}
	key := keys[0]
	replies, err := s.runner.Numbered(ctx, keys.At(0),
		transport.Command{"PTTL", key}, transport.Command{"PEXPIRE", key, ttl, "GT"}, transport.Command{"GET", key})
	if err != nil {
		return nil, 0, err
	}
	before, _ := replies[0].(int64)
	_, done := replies[1].(int64)
	text, _ = scripting.Text(replies[2])
	record, err := parseRecord(text)
	left := record.Created.Add(t.Lifetime).Sub(now).Milliseconds()
	if !done || err != nil || len(text) > t.MaxBytes || left <= ttl || fixed && before < left-time.Second.Milliseconds() {
		return nil, max(0, before), nil
	}
	return text, 0, nil
}

// Create stores the first record of a new id, in one exchange and without a lock: nobody else
// knows the id yet. The error wraps [ErrTooLarge] or [ErrUnavailable].
func (s *Store) Create(ctx context.Context, id string, data []byte, t Terms) error {
	return failed("creating", id, s.create(ctx, id, lease.NewID(), time.Now(), data, t.withDefaults()))
}

func (s *Store) create(ctx context.Context, id, stamp string, created time.Time, data []byte, t Terms) error {
	if s.closed.Load() {
		return lease.ErrClosed
	}
	record := Record{Data: data, Created: created, name: stamp}
	if err := t.fits(record); err != nil {
		return err
	}
	reply, err := s.runner.Run(ctx, createScript, scripting.Keys{s.recordKey(id)}, stamp, record.text(), t.expiry(created, time.Now()))
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
