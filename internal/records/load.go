package records

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/a2139e8d/latchkey/internal/lease"
	"github.com/a2139e8d/latchkey/internal/scripting"
	"github.com/a2139e8d/latchkey/locker/transport"
)

// Load reads a record without a lock and extends its idle timeout, in one round trip. It returns the last
// committed record, even while another request holds the session. The error wraps [ErrNotFound], [ErrGone],
// [ErrCorrupt], [ErrTooLarge] or [ErrUnavailable].
//
// To look at a session without extending it, leave the timeouts of t zero, or set Quiet. Without a TTL no timeout is
// extended. Without a Lifetime the session ends when its record expires.
func (s *Engine) Load(ctx context.Context, id string, t Terms) (Record, error) {
	looks := t.TTL == 0 // perhaps at a session that is not that of the request
	if t.Quiet {
		t.TTL = 0
	}
	t.MaxBytes = cmp.Or(t.MaxBytes, DefaultMaxBytes)
	text, mark, _, err := s.readRecord(ctx, id, t)
	if err == nil && !looks {
		s.sized(ctx, len(text))
	}
	var record Record
	if err == nil {
		record, err = parse(text, s.form(id))
		record.unclaimed = belowOf(mark, id)
	}
	return record, failed("loading", id, err)
}

// Peek is like Load, but never extends the session. expires is when the session ends if it is not used again.
func (s *Engine) Peek(ctx context.Context, id string, t Terms) (record Record, expires time.Time, err error) {
	t = t.withDefaults()
	look := t
	look.TTL = 0
	text, _, left, err := s.readRecord(ctx, id, look)
	if err == nil {
		record, err = parse(text, s.form(id))
	}
	if err != nil {
		return Record{}, time.Time{}, failed("looking at", id, err)
	}
	now := time.Now()
	if left == 0 { // unknown; remains is the longest that it can be
		left = t.remains(&record, now)
	}
	return record, now.Add(min(left, t.left(&record, now))), nil
}

// # Reading without a script
//
// A script costs Redis three times as much as the commands in it. So the first try is
//
//	PTTL record
//	PEXPIRE record ttl GT
//	GET record
//	PING number
//
// in one write. GT, because a session that is held may have a longer timeout. PING returns the number of the
// call, behind the record, so that no reply of another call is taken for one of these. If two replies have
// changed places, the record reveals it: see record.go. A replica, which may have an old record, refuses
// PEXPIRE. If the timeout must not be extended, ttl is 0, and PEXPIRE changes nothing.
//
// In every unusual case load.lua follows. It also reverts PEXPIRE if that has extended a tombstone, a record
// beyond its lifetime, or a value that is not a record. PTTL has returned the time to live before PEXPIRE.
// The record gets that time again, or the rest of its lifetime. (If the reply to PTTL is lost, the record
// stays extended.) If the lock may have been acquired in between, the record keeps enough time for the holder
// to renew its lease.
//
// The plain commands extend every session by the same timeout. If a session has a shorter idle timeout of its
// own, a guest's, load.lua reverts that, too. Once such a session was seen, load.lua is called at once, which
// costs less than both.

// readRecord returns the stored record, its user's mark, and its time to live before the call, or 0 if that is
// unknown. If t has no Lifetime, no session has reached the end of its lifetime.
func (s *Engine) readRecord(ctx context.Context, id string, t Terms) (text []byte, mark string, _ time.Duration, err error) {
	if err := s.usable(); err != nil {
		return nil, "", 0, err
	}
	begun, keys := time.Now(), s.recordKeys(id)
	var had int64
	plainly := t.TTL == 0 || t.Quiet || t.GuestTTL == 0 && !s.guests.Load()
	if plainly {
		text, mark, had, err = s.loadPlainly(ctx, keys, s.bond(id), t, begun)
	}
	if !plainly || text == nil && (err == nil || scripting.Broken(err)) {
		undo := had
		if t.TTL == 0 || t.onlyLifetime() {
			undo = 0 // the plain read has extended nothing
		}
		text, mark, err = s.loadByScript(ctx, keys, s.box(id), t, undo, begun)
	}
	return text, mark, time.Duration(had) * time.Millisecond, err
}

// loadByScript is load with load.lua. undo is the time to live in ms that a plain read before has extended, or 0.
func (s *Engine) loadByScript(ctx context.Context, keys sessionKeys, b *box, t Terms, undo int64, begun time.Time) (text []byte, mark string, _ error) {
	// Both tries together take no longer than one round trip may.
	ctx, cancel := context.WithDeadline(ctx, begun.Add(s.options.Timeout))
	defer cancel()
	now := time.Now()
	var outlived any = ""
	if t.Lifetime != 0 {
		outlived = t.outlived(now)
	}
	x := scripting.RoundTrip{Script: loadScript, Keys: keys.forScript(), Args: []any{outlived, t.TTL.Milliseconds(), t.MaxBytes, undo,
		(cmp.Or(s.options.Lease, lease.DefaultLease) + outlast).Milliseconds(), now.UnixMilli()}}
	if t.Quiet || t.TTL == 0 {
		x.Args = append(x.Args, yes)
	}
	_, reply, err := s.runner.RoundTrip(ctx, x)
	if err != nil {
		return nil, "", err
	}
	text, err = found(reply, b)
	mark, _ = reply.TextAt(2) // of a guest's session there is none
	return text, mark, err
}

// loadPlainly is load without a script. If it returns neither a record nor an error, load.lua must follow.
// had is the time to live in ms before the call, or 0.
func (s *Engine) loadPlainly(ctx context.Context, keys sessionKeys, bond lease.Bond, t Terms, now time.Time) (text []byte, mark string, had int64, _ error) {
	ttl := t.TTL.Milliseconds()
	fixed := t.onlyLifetime()
	if fixed {
		ttl = 0 // PEXPIRE extends nothing
	}
	key, ofUser := keys.record, keys.ofUser()
	words := []any{"PTTL", key, "PEXPIRE", key, ttl, "GT", "GET", key} // in one allocation
	if ofUser {
		words = append(words[:6], "MGET", key, keys.mark)
	}
	commands := append(make([]transport.Command, 0, 4), words[:2:2], words[2:6:6], words[6:]) // room for PING
	replies, err := s.runner.RoundTripNumbered(ctx, key.(string), commands...)
	if err != nil {
		return nil, "", 0, err
	}
	found := replies[2]
	if values, _ := found.([]any); ofUser && len(values) == 2 {
		text, _ := scripting.Text(values[1])
		found, mark = values[0], string(text)
	}
	before, _ := replies[0].(int64)
	if before == 0 || before == 1 { // it may be the reply to PEXPIRE: the two replies may have changed places
		before = tombstoneTime.Milliseconds()
	}
	_, done := replies[1].(int64)
	text, _ = scripting.Text(found)
	record, _, _, err := parseHead(text, bond)
	left := t.left(&record, now).Milliseconds()
	guest := record.Own != nil && record.Own.Idle > 0 && t.TTL > 0 && !t.Quiet
	if guest {
		s.guests.Store(true)
	}
	if !done || err != nil || ofUser && !alive(mark, keys, record.epoch) || len(text) > t.MaxBytes || guest || left <= ttl || fixed && before < left-time.Second.Milliseconds() {
		return nil, "", max(0, before), nil
	}
	return text, mark, max(0, before), nil
}

// unusable reports whether err means that there is a record, but it cannot be used.
func unusable(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTooLarge)
}
