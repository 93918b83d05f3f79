package fakeredis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// entry is the value of a key: a string or, if one of these is not nil, a list or a sorted set.
type entry struct {
	text    string
	list    []string
	sorted  sortedSet
	expires int64 // Unix ms after which it is gone; 0: never
}

func (e entry) isString() bool { return e.list == nil && e.sorted == nil }

func (e entry) expired(ms int64) bool { return e.expires != 0 && ms > e.expires }

// lookup returns the value of a key, and deletes the key if it has expired.
func (s *Server) lookup(key string) (entry, bool) {
	e, ok := s.keys[key]
	if ok && e.expired(s.ms) {
		delete(s.keys, key)
		return entry{}, false
	}
	return e, ok
}

// deleteExpired frees the memory of expired keys that no command has looked up.
func (s *Server) deleteExpired() {
	maps.DeleteFunc(s.keys, func(_ string, e entry) bool { return e.expired(s.ms) })
}

// Keys returns the keys that exist at a time, sorted.
func (s *Server) Keys(now time.Time) []string {
	keys := make([]string, 0, len(s.keys))
	for key, e := range s.keys {
		if !e.expired(now.UnixMilli()) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Get returns the string at a key, and false if the key holds a list or a sorted set.
func (s *Server) Get(now time.Time, key string) (string, bool) {
	e, ok := s.keys[key]
	if !ok || !e.isString() || e.expired(now.UnixMilli()) {
		return "", false
	}
	return e.text, true
}

// Left returns the time to live of a key, or -1 if it does not expire.
func (s *Server) Left(now time.Time, key string) (time.Duration, bool) {
	e, ok := s.keys[key]
	switch {
	case !ok, e.expired(now.UnixMilli()):
		return 0, false
	case e.expires == 0:
		return -1, true
	default:
		return time.Duration(e.expires-now.UnixMilli()) * time.Millisecond, true
	}
}

// Delete removes a key, regardless of the faults, and reports whether it existed.
func (s *Server) Delete(key string) bool {
	_, ok := s.keys[key]
	delete(s.keys, key)
	return ok
}

// Dump returns all keys at a time in a canonical form, one line each: the key, its time to live in ms, or
// -1 if it does not expire, and its value. Equal data has equal dumps.
func (s *Server) Dump(now time.Time) string {
	var b []byte
	for _, key := range s.Keys(now) {
		e := s.keys[key]
		left := int64(-1)
		if e.expires != 0 {
			left = e.expires - now.UnixMilli()
		}
		b = strconv.AppendQuote(b, key)
		b = strconv.AppendInt(append(b, ' '), left, 10)
		b = append(b, ' ')
		if e.list != nil {
			b = fmt.Appendf(b, "%q\n", e.list)
			continue
		}
		if e.sorted != nil {
			b = fmt.Appendf(b, "%v\n", e.sorted)
			continue
		}
		b = append(strconv.AppendQuote(b, e.text), '\n')
	}
	return string(b)
}
