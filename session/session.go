// Package session provides the session that a handler works with: a map from string keys to values, loaded
// before the handler runs and saved after it.
//
//	s := session.FromContext(r.Context())
//	visits, _ := session.Get[int](s, "visits")
//	s.Set("visits", visits+1)
//
// A handler also logs its visitor in and out with it ([Session.Login], [Session.Destroy]), shows a message once
// ([Pop]), and releases the session before slow work ([Session.Commit]). This package knows neither HTTP nor Redis: package
// middleware opens and commits the sessions, and a program starts with its function New.
//
// # Values
//
// Values stay encoded. A session holds each value as the JSON that is stored, and decodes it only when [Get] or
// [Session.Decode] asks for it with a type. So a value that is not read costs nothing, survives byte for byte,
// and needs no registered type: a process that does not know a value's type passes it on unharmed. Every Get
// decodes afresh and returns a copy, so no two callers ever share a value.
//
// # When it is saved
//
// A session is open until it is committed: by [Session.Commit], by the first byte of the response that is sent, or
// when the handler returns. What was set until then is saved, unless [Session.Discard] was called. A later change is
// reported as a mistake instead of being dropped silently, unless [Session.Reopen] has reopened the session.
//
// # Testing handlers
//
// The zero [Session] is empty, new, and kept nowhere. A test fills it, hands it to the handler with
// [NewContext], and reads it afterwards: [Get] returns the values, [Session.User] the user of a Login, and
// [Session.Commit] the error of a Set that failed. A change after a Commit is dropped, and nothing reports it: a second
// Commit returns nil. For whole requests use package middleware/sessiontest, which reports such a change, and also shows
// the cookie, and whether a session that the handler has renewed or destroyed still exists.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/values"
)

// ErrReadOnly is the error of a commit if the session was opened for reading only, and then changed.
var ErrReadOnly = errors.New("session is open for reading only: use another mode for requests that write")

// ErrClosed is the error of a request that changed its session after the commit.
var ErrClosed = errors.New("the session was saved already: change it before")

// A Session is one visitor's data during one request. The zero Session is empty, new, and kept nowhere.
//
// Several goroutines of its request may use a Session. Each method is atomic on its own; nothing is locked
// between a Get and the Set that follows. No other request changes the session while this one holds its lock.
type Session struct {
	keeper keep.Keeper // set before the handler runs; nil: the session is kept nowhere

	mu       sync.Mutex // guards everything below
	config   keep.Config
	values   values.Values
	used     bool        // the content was asked for
	change   keep.Change // Changed: values differ from what was loaded
	given    func()      // reverts to the content that a test has given the session; nil: no test has
	culprit  string      // the first call that made a change, if the session is for reading only
	err      error       // of the first Set that failed; it fails the commit
	closedBy string      // what has closed the session; "": it is open
}

// Set stores v under key, replacing what was there.
//
// The value is encoded as JSON before Set returns, so later changes to v are not seen. Integers of any size,
// [time.Time] (to the nanosecond, without its monotonic clock) and structs of these come back exactly. As always with
// encoding/json, four things do not:
//
//   - A time.Time whose zone is some minutes and seconds from UTC, as local times before 1900, comes back some seconds off.
//   - Fields that JSON leaves out are dropped: unexported fields, fields with the tag json:"-", and fields that share a
//     name. So a [net/url.URL] comes back without its user name and password: store its String instead.
//   - With the option omitempty an empty slice or map comes back as nil.
//   - A struct in an interface, such as a field of type any, comes back as a map[string]any.
//
// A value that JSON cannot hold is an error, which sticks and fails the commit:
//
//   - functions, channels, NaN;
//   - keys and strings that are not valid UTF-8, which JSON would alter silently: store a []byte instead;
//   - a struct of which JSON would keep nothing, since it has fields but no exported field, and neither MarshalJSON
//     nor MarshalText: errors.New("x"), a [sync.Mutex]. The same holds for a pointer to such a struct, and for a slice,
//     array or map with such elements;
//   - a value for which the session has no room: this error wraps the store's ErrTooLarge.
func (s *Session) Set(key string, v any) {
	raw, err := values.Encode(v)
	if err == nil && !utf8.ValidString(key) {
		err = values.ErrNotUTF8
	}
	s.mutate("Set", key, func() (changed bool) {
		if s.change.Destroyed && s.change.Dropped == "" {
			s.change.Dropped = key
		}
		tooLarge := 0
		if err == nil { // a Set that changes nothing does not make the commit write the record
			changed, tooLarge = s.values.Put(key, raw, cmp.Or(s.config.MaxBytes, math.MaxInt))
		}
		if tooLarge > 0 {
			err = fmt.Errorf("%w: it would have %d bytes, MaxBytes is %d", s.config.TooLarge, tooLarge, s.config.MaxBytes)
		}
		if err != nil && s.err == nil {
			s.err = fmt.Errorf("session: Set(%q): %w", excerpt.Of(key), err)
		}
		return changed
	})
}

// Delete removes key. Removing an absent key changes nothing.
func (s *Session) Delete(key string) {
	s.mutate("Delete", key, func() bool { return s.values.Delete(key) })
}

// Clear removes all keys. The session itself, and its ID, stay.
func (s *Session) Clear() {
	s.mutate("Clear", "", func() bool {
		found := s.values.Len() > 0
		s.values = values.Values{}
		return found
	})
}

// Renew gives the session a new ID at the commit; the old ID is dead from then on. Call it whenever the visitor's
// rights change, so that an ID planted before is worth nothing afterwards; at a login [Session.Login] does it.
// The values, the user, and the absolute timeout stay. A guest's session is a member's from then on: see
// Options.Cookie of package middleware.
func (s *Session) Renew() {
	s.mutate("Renew", "", func() bool { s.change.Renewed = true; return false })
}

// Destroy removes the session at the commit, whatever else was done to it, and its ID is dead from then on. Call
// it at logout.
//
// Values set after Destroy are dropped, and a warning is logged. To say goodbye on the next page, redirect to an
// address that says so, such as /?goodbye. Until the end of the handler the session still has its values and its user.
// Only Expires is zero from then on. Clear and Renew are not a logout: the user stays logged in.
func (s *Session) Destroy() {
	s.mutate("Destroy", "", func() bool { s.change.Destroyed = true; return false })
}

// mutate runs do under the mutex; do reports whether it changed the values. If the session is closed, the change
// would be lost, and mutate reports the call instead.
func (s *Session) mutate(method, key string, do func() bool) {
	s.mu.Lock()
	s.used = true
	if closedBy := s.closedBy; closedBy != "" {
		s.mu.Unlock()
		if s.keeper != nil {
			s.keeper.ChangedLate(method, key, closedBy)
		}
		return
	}
	defer s.mu.Unlock()
	s.change.Changed = do() || s.change.Changed
	if s.config.ReadOnly && s.culprit == "" && s.changed() {
		s.culprit = method
		if key != "" {
			s.culprit = fmt.Sprintf("%s(%q)", method, excerpt.Of(key))
		}
	}
}

// changed reports whether the handler wants anything to be changed.
func (s *Session) changed() bool {
	c := &s.change
	return c.Changed || c.Renewed || c.Destroyed || c.Remembered
}

// Len returns the number of keys.
func (s *Session) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return s.values.Len()
}

// Keys iterates over the keys, sorted, as they are when Keys is called.
func (s *Session) Keys() iter.Seq[string] {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return slices.Values(s.values.Keys())
}

// ID returns the public ID: safe to log, useless to an attacker. It names the record in the store. [Session.Renew]
// and [Session.Login] change the ID at the commit; until then ID returns the old one. Asking for the ID, as a log does, does not
// count as use of the session: shared caches may store the response.
func (s *Session) ID() string {
	if s.keeper == nil {
		return ""
	}
	return s.keeper.SessionID()
}

// IsNew reports whether there was no record of the session when it was opened or last reopened: the visitor has
// no session yet, or it has expired or been destroyed.
func (s *Session) IsNew() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return s.isNew()
}

func (s *Session) isNew() bool { return s.config.Data == nil && s.config.Snapshot == nil }

// Commit saves the session and releases its lock now, instead of at the end of the handler. Call Commit before slow
// work that no longer needs the session, so that the visitor's other requests need not wait for that work.
//
// Commit takes no longer than the timeouts of the store allow. In mode Optimistic it may also wait for the lock. It does not
// end with ctx: what has begun is saved even if the client goes away meanwhile.
//
// The session can still be read afterwards. A change is a mistake, unless [Session.Reopen] has opened the session
// again: the change is logged, and the response becomes an error ([ErrClosed]) or, if it has begun, is cut off.
//
// If Commit fails, nothing was saved, with two exceptions. With the store's ErrUnavailable the session may have been
// saved. With [ErrClosed] it is saved, except for a change that came after the commit. The response will be the error,
// whatever the handler writes. Until a Reopen, a second Commit returns the result of the first, or ErrClosed.
func (s *Session) Commit(ctx context.Context) error {
	if s.keeper == nil {
		_, err := s.close("Commit")
		return err
	}
	return s.keeper.CommitSession(ctx)
}
