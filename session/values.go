package session

import (
	"slices"
	"strings"
)

// An entry is one value of a session, encoded.
type entry struct{ key, raw string }

// values are a session's entries, sorted by key and no key twice: as they are
// stored. Up to some thousand, a slice is smaller and faster than a map.
type values []entry

// find returns where key is, or where it belongs.
func (v values) find(key string) (at int, found bool) {
	return slices.BinarySearchFunc(v, key, func(e entry, key string) int { return strings.Compare(e.key, key) })
}

func (v values) get(key string) (raw string, ok bool) {
	at, ok := v.find(key)
	if !ok {
		return "", false
	}
	return v[at].raw, true
}

// set reports whether that changed anything.
func (v *values) set(key, raw string) bool {
	at, ok := v.find(key)
	switch {
	case !ok:
		*v = slices.Insert(*v, at, entry{key, raw})
	case (*v)[at].raw == raw:
		return false
	default:
		(*v)[at].raw = raw
	}
	return true
}

// delete reports whether there was such a key.
func (v *values) delete(key string) bool {
	at, ok := v.find(key)
	if ok {
		*v = slices.Delete(*v, at, at+1)
	}
	return ok
}
