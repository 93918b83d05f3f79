package session

import (
	"slices"
	"strings"
)

// An entry is one value of a session, encoded.
type entry struct{ key, raw string }

// size returns how many bytes the entry takes in the encoded form, with its comma.
func (e entry) size() int {
	key := len(e.key) + len(`"":,`)
	if !plain(e.key) {
		key = len(appendKey(nil, e.key)) + len(":,")
	}
	return key + len(e.raw)
}

// A table holds entries, no key twice. They are sorted by key, as they are stored, until many have
// been added: inserting n of them one by one into a sorted slice moves n² of them. A
// slice is smaller and faster than a map up to some thousand, so the map comes only then.
type table struct {
	entries []entry
	added   int            // how many were inserted into the sorted slice
	index   map[string]int // where each key is; nil while the entries are sorted
}

// maxAdded is how many entries are inserted in order. More belong to a session that is being
// filled, for which building the index pays.
const maxAdded = 64

// find returns where key is, or where it belongs.
func (t *table) find(key string) (at int, found bool) {
	if t.index != nil {
		at, found = t.index[key]
		return at, found
	}
	return find(t.entries, key)
}

func find(sorted []entry, key string) (at int, found bool) {
	return slices.BinarySearchFunc(sorted, key, func(e entry, key string) int { return strings.Compare(e.key, key) })
}

// put stores e where find has found its key or place.
func (t *table) put(at int, found bool, e entry) {
	switch {
	case found:
		t.entries[at].raw = e.raw
	case t.index == nil && t.added < maxAdded:
		t.entries = slices.Insert(t.entries, at, e)
		t.added++
	default:
		if t.index == nil {
			t.index = make(map[string]int, 2*len(t.entries))
			for i, known := range t.entries {
				t.index[known.key] = i
			}
		}
		t.index[e.key] = len(t.entries)
		t.entries = append(t.entries, e)
	}
}

// remove removes the entry that find has found.
func (t *table) remove(at int) {
	if t.index == nil {
		t.entries = slices.Delete(t.entries, at, at+1)
		return
	}
	last := len(t.entries) - 1
	delete(t.index, t.entries[at].key)
	if at != last {
		t.entries[at] = t.entries[last]
		t.index[t.entries[at].key] = at
	}
	t.entries = slices.Delete(t.entries, last, last+1)
}

// sorted returns the entries, sorted, and leaves them so.
func (t *table) sorted() []entry {
	if t.index != nil {
		sortByKey(t.entries)
		t.index, t.added = nil, 0
	}
	return t.entries
}

func sortByKey(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
}
