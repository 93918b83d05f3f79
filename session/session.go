// Package session is a visitor's session as a handler sees it: a map from string
// keys to values, loaded before the handler runs and saved after it.
//
//	s := session.FromContext(r.Context())
//	visits, _ := session.Get[int](s, "visits")
//	s.Set("visits", visits+1)
//
// # Values
//
// Values stay encoded. A session holds each value as the JSON that is stored, and decodes it only
// when [Get] or [Session.Decode] asks for it with a type. So a value that nobody looks at costs
// nothing, survives byte for byte, and needs no registered type: a process that does not know a
// value's type passes it on unharmed. Every Get decodes afresh and returns a copy, so no two
// callers ever share a value.
//
// # When it is saved
//
// A session is open until it is committed: by [Session.Commit], by the first byte of the answer, or
// at the end of the handler. What was set until then is saved, unless [Session.Discard] was called.
// What is set later is reported as a mistake instead of being lost in silence, until
// [Session.Reopen] opens the session again.
//
// # Testing handlers
//
// The zero [Session] is empty, new, and kept nowhere. A test fills it, hands it to
// the handler with [NewContext], and looks at it afterwards; [Session.Seal] returns
// what a commit would save, and whether the handler called Renew or Destroy. Whole requests, with
// cookies and what may happen to a session, are tested with package middleware/sessiontest.
//
// This package knows neither HTTP nor Redis: package middleware opens and commits the sessions.
package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// ErrReadOnly is the error of a commit whose session was opened for reading
// only and changed nevertheless.
var ErrReadOnly = errors.New("session is open for reading only: use another mode for requests that write")

// ErrClosed is the error of a request that changed its session after the commit.
var ErrClosed = errors.New("the session was saved already: change it before")

// A Session is one visitor's data during one request. The zero Session is empty, new, and kept
// nowhere.
//
// A Session may be used by several goroutines of its request. Each method is
// atomic on its own; nothing is locked between a Get and the Set that follows.
// No other request changes it while this one holds the session's lock.
type Session struct {
	config keep.Config

	mu      sync.Mutex // guards everything below
	values  values
	used    bool   // see Used
	change  Change // Changed: values differ from what was loaded
	given   *given // what Discard goes back to, where a test has filled the session
	culprit string // the first call that made a change where the session is for reading only
	err     error  // the first Set that failed; it fails the commit
	sealed  string // once sealed: what sealed it, never empty
}

// Set stores v under key, replacing what was there.
//
// The value is encoded as JSON before Set returns, so later changes to v are not seen. Integers
// of any size, [time.Time] (to the nanosecond, without its monotonic clock) and nested structs
// come back exactly. What JSON cannot hold is an error that sticks and fails the commit:
// functions, channels, NaN, and keys or strings that are not valid UTF-8, which JSON would alter
// in silence (store a []byte instead). So is a value for which the session has no room: that
// error wraps the store's ErrTooLarge.
func (s *Session) Set(key string, v any) {
	raw, err := encode(v)
	if err == nil && !utf8.ValidString(key) {
		err = errNotUTF8
	}
	s.mutate("Set", key, func() bool {
		if s.change.Destroyed && s.change.Dropped == "" {
			s.change.Dropped = key
		}
		changed := false
		if err == nil {
			changed, err = s.put(entry{key, raw})
		}
		if err != nil && s.err == nil {
			s.err = fmt.Errorf("session: Set(%.64q): %w", key, err)
		}
		return changed
	})
}

// put stores e if there is room for it, and reports whether that changed anything: where it is
// the same as before, the record need not be written again.
func (s *Session) put(e entry) (changed bool, err error) {
	was, found := s.values.get(e.key)
	if found && was == e.raw {
		return false, nil
	}
	size := encodedSize(s.values.totalWith(e, was, found))
	if limit := s.config.MaxBytes; limit > 0 && size > limit && size > s.values.size() {
		return false, fmt.Errorf("%w: it would have %d bytes, MaxBytes is %d", s.config.TooLarge, size, limit)
	}
	s.values.put(e, was, found)
	return true, nil
}

// Delete removes key. Removing an absent key changes nothing.
func (s *Session) Delete(key string) {
	s.mutate("Delete", key, func() bool {
		was, found := s.values.get(key)
		if found {
			s.values.remove(key, was)
		}
		return found
	})
}

// Clear removes all keys. The session itself, and its id, stay.
func (s *Session) Clear() {
	s.mutate("Clear", "", func() bool {
		found := s.values.length > 0
		s.values = values{}
		return found
	})
}

// Renew gives the session a new id at commit; the old id is dead from then on. Call it whenever
// the visitor's rights change, so that an id planted before is worth nothing after it; at a login
// [Session.Login] does it. The data, the user, and the absolute timeout, stay.
func (s *Session) Renew() {
	s.mutate("Renew", "", func() bool { s.change.Renewed = true; return false })
}

// Destroy removes the session at commit, whatever else was done to it, and its
// id is dead from then on. Call it at logout.
//
// What is set after it is dropped, which is logged. To say goodbye on the next page, call Clear,
// Renew and Set instead: nothing is left of the old session but its message.
func (s *Session) Destroy() {
	s.mutate("Destroy", "", func() bool { s.change.Destroyed = true; return false })
}

// mutate runs do under the mutex, which reports whether it changed the values. Where the session
// is sealed already, mutate reports the call instead, since the change would be lost.
func (s *Session) mutate(method, key string, do func() bool) {
	if sealed := s.mutateOpen(method, key, do); sealed != "" && s.config.Keeper != nil {
		s.config.Keeper.ChangedLate(method, key, sealed)
	}
}

// mutateOpen returns what has sealed the session, if it is sealed.
func (s *Session) mutateOpen(method, key string, do func() bool) (sealed string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	if s.sealed == "" {
		s.change.Changed = do() || s.change.Changed
		if s.config.ReadOnly && s.culprit == "" && s.change.wanted() {
			s.culprit = method
			if key != "" {
				s.culprit = fmt.Sprintf("%s(%.64q)", method, key)
			}
		}
	}
	return s.sealed
}

// Len returns the number of keys.
func (s *Session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return s.values.length
}

// Keys iterates over the keys, sorted, as they are at the time of the call.
func (s *Session) Keys() iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	keys := make([]string, 0, s.values.length)
	for e := range s.values.each {
		keys = append(keys, e.key)
	}
	return slices.Values(keys)
}

// ID returns the public id: safe to log, useless to an attacker. It names the record in the
// store. After [Session.Renew] or [Session.Login] it is the old one until the commit, the new one afterwards; so it
// is where a session begins in place of one that another request has ended.
func (s *Session) ID() string {
	if s.config.Keeper == nil {
		return ""
	}
	return s.config.Keeper.SessionID()
}

// IsNew reports whether there was no record of the session at the start of the request, or when it
// was last reopened: it is the visitor's first, or its id is unknown, has timed out or was destroyed.
func (s *Session) IsNew() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return s.isNew()
}

func (s *Session) isNew() bool { return s.config.Data == nil && s.config.Snapshot == nil }

// Commit saves the session and releases its lock now, instead of at the end of
// the handler: call it before slow work that no longer needs the session, so that
// the visitor's other requests need not wait for it.
//
// The session can still be read afterwards. A change is a mistake, unless the session is opened
// again by [Session.Reopen]: it is logged, and the answer becomes an error ([ErrClosed]) or, if it
// has begun, is cut off. An error means that nothing was saved, unless it wraps the store's
// ErrUnavailable: then it may have been saved all the same. The answer will be that error, whatever
// the handler writes. Until a Reopen, a second Commit returns what the first one did.
func (s *Session) Commit(ctx context.Context) error {
	if s.config.Keeper == nil {
		_, err := s.Seal("Commit")
		return err
	}
	return s.config.Keeper.CommitSession(ctx)
}
