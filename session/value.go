package session

import (
	"errors"
	"fmt"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/values"
)

// Errors of [Session.Decode].
var (
	// ErrAbsent says that the session has no such key.
	ErrAbsent = errors.New("no such key in the session")
	// ErrType says that the value does not fit the wanted type.
	ErrType = errors.New("the session's value is of another type")
)

// Get returns the value of key as a T, decoded now: a fresh copy, which the caller may change. It returns
// false if the key is absent or its value cannot be decoded into a T; [Session.Decode] tells these apart.
//
// Conversion follows the rules of JSON: a number without a fraction fits every integer type that can hold it,
// null fits only types that can be nil or decode themselves, and fields that a struct does not have are
// ignored, so a type may change while old sessions are around. Fields that [Session.Set] has dropped are zero. In an
// any, JSON does not know what was set: a struct or a map comes back as a map[string]any, a slice as a []any, a number
// as a [encoding/json.Number], exactly, and a time as a string.
func Get[T any](s *Session, key string) (T, bool) {
	raw, ok := s.look(key)
	var v T
	if !ok || values.DecodeScalar(raw, &v) {
		return v, ok
	}
	decoded := new(T) // not v, which may be half filled by a failure
	if err := values.Decode(raw, decoded); err != nil {
		return v, false
	}
	return *decoded, true
}

// Pop is [Get] followed by [Session.Delete], for flash messages, which are shown once. A value that cannot be
// decoded into a T stays.
func Pop[T any](s *Session, key string) (T, bool) {
	v, ok := Get[T](s, key)
	if ok {
		s.Delete(key)
	}
	return v, ok
}

// Decode stores the value of key in *v, by the rules of [Get]. Its error wraps [ErrAbsent] or [ErrType]; after
// ErrType, *v may be half filled.
func (s *Session) Decode(key string, v any) error {
	raw, ok := s.look(key)
	if !ok {
		return fmt.Errorf("session: %q: %w", excerpt.Of(key), ErrAbsent)
	}
	if err := values.Decode(raw, v); err != nil {
		return fmt.Errorf("session: %q: %w: %w", excerpt.Of(key), ErrType, err)
	}
	return nil
}

// look returns the encoded value of key.
func (s *Session) look(key string) (raw string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return s.values.Get(key)
}
