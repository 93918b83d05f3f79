// Package session is the session as a handler sees it: a mutable map from
// string keys to values, which somebody else loads before the handler runs and
// saves after it.
//
// # Design
//
// Values stay encoded. A session holds each value as the JSON it had in the
// store, and decodes it only when [Get] or [Decode] asks for it with a type. So
// a value that nobody looks at costs nothing, survives byte for byte, and
// needs no registered type: a process that does not know a value's type passes
// it on unharmed. Every Get decodes afresh and returns a copy, so no two
// callers ever share a value.
//
// A session is open until it is committed, once. [Session.Commit] (or the end
// of the handler, or the first byte of the answer) seals it: what was set
// until then is saved, and what is set later is reported as a broken rule
// instead of being lost in silence.
//
// This package knows neither HTTP nor Redis. Package middleware opens the
// sessions and puts them into the request's context; package store keeps what
// [Session.Seal] hands out.
package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"unicode/utf8"
)

// ErrReadOnly is the error of a commit whose session was opened for reading
// only and was written to all the same.
var ErrReadOnly = errors.New("session is open for reading only: use another mode for requests that write")

// A Session is one visitor's data during one request.
//
// The zero Session is empty, new, and kept nowhere: pass it to [NewContext] to
// test a handler without a store.
//
// A Session may be used by several goroutines of its request. Each method is
// atomic on its own; there is no lock around a Get and the Set that follows.
// Between requests the lock of package store is what keeps them apart.
type Session struct {
	config Config

	mu        sync.Mutex // guards everything below
	values    values
	borrowed  bool   // values are those of a Memory
	used      bool   // somebody asked for anything at all
	changed   bool   // values differ from what was loaded
	renewed   bool   // Renew was called
	destroyed bool   // Destroy was called
	err       error  // the first Set that failed; it fails the commit
	sealed    string // once sealed: what sealed it, never empty
}

// Set stores v under key, replacing what was there.
//
// The value is encoded as JSON before Set returns, so later changes to v are
// not seen. Integers of any size, [time.Time] (to the nanosecond, without its
// monotonic clock) and nested structs come back exactly. What JSON cannot hold
// is an error that sticks and fails the commit: functions, channels, NaN, and
// keys or strings that are not valid UTF-8, which JSON would alter in silence
// (store a []byte instead).
func (s *Session) Set(key string, v any) {
	raw, err := encode(v)
	if err == nil && !utf8.ValidString(key) {
		err = errNotUTF8
	}
	s.mutate("Set", key, func() {
		switch {
		case err == nil:
			s.own()
			if s.values.set(key, raw) { // else the record need not be written again
				s.changed = true
			}
		case s.err == nil:
			s.err = fmt.Errorf("session: Set(%q): %w", key, err)
		}
	})
}

// Delete removes key. Removing an absent key changes nothing.
func (s *Session) Delete(key string) {
	s.mutate("Delete", key, func() {
		s.own()
		if s.values.delete(key) {
			s.changed = true
		}
	})
}

// Clear removes all keys. The session itself, and its id, stay.
func (s *Session) Clear() {
	s.mutate("Clear", "", func() {
		s.changed = s.changed || len(s.values) > 0
		s.values = nil
	})
}

// Renew gives the session a new id at commit; the old id is dead from then on.
// Call it whenever the visitor's rights change, above all at login, so that an
// id planted before the login is worth nothing after it. The data, and the
// absolute time-out, stay.
func (s *Session) Renew() {
	s.mutate("Renew", "", func() { s.renewed = true })
}

// Destroy removes the session at commit, whatever else was done to it, and its
// id is dead from then on. Call it at logout.
func (s *Session) Destroy() {
	s.mutate("Destroy", "", func() { s.destroyed = true })
}

// mutate runs do under the mutex, or reports the call where the session is
// sealed already and the change would be lost.
func (s *Session) mutate(method, key string, do func()) {
	s.mu.Lock()
	s.used = true
	sealed := s.sealed
	if sealed == "" {
		do()
	}
	s.mu.Unlock()
	if sealed != "" && s.config.Keeper != nil {
		s.config.Keeper.ChangedLate(method, key, sealed)
	}
}

// own makes values the session's own before they change. It is called with mu
// held.
func (s *Session) own() {
	if s.borrowed {
		s.values, s.borrowed = append(make(values, 0, len(s.values)+1), s.values...), false
	}
}

// Len returns the number of keys.
func (s *Session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return len(s.values)
}

// Keys iterates over the keys, sorted, as they are at the time of the call.
func (s *Session) Keys() iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	keys := make([]string, len(s.values))
	for i, e := range s.values {
		keys[i] = e.key
	}
	return slices.Values(keys)
}

// ID returns the public id: safe to log, useless to an attacker. It names the
// record in the store. After [Session.Renew] it is the old one until the
// commit, the new one afterwards.
func (s *Session) ID() string {
	if s.config.Keeper == nil {
		return ""
	}
	return s.config.Keeper.SessionID()
}

// IsNew reports whether the session was empty at the start of the request for
// want of a record: the visitor's first one, or one with an id that ran out, is
// unknown, or was destroyed.
func (s *Session) IsNew() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return s.config.Data == nil
}

// Commit saves the session and gives its lock back now, instead of at the end
// of the handler: call it before slow work that no longer needs the session, so
// that the visitor's other requests need not wait for it.
//
// The session can still be read afterwards; a change is a mistake, which is
// logged and cuts the answer off. An error means that nothing was saved; the
// answer will be that error, whatever the handler writes. A second Commit
// returns what the first one did.
func (s *Session) Commit(ctx context.Context) error {
	if s.config.Keeper == nil {
		_, err := s.Seal("Commit")
		return err
	}
	return s.config.Keeper.CommitSession(ctx)
}
