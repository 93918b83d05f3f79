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

// values are a session's entries, no key twice. They are sorted by key, as they are stored, until
// many have been added: inserting n of them one by one into a sorted slice moves n² of them. A
// slice is smaller and faster than a map up to some thousand, so the map comes only then.
type values struct {
	entries []entry
	added   int            // how many were inserted into the sorted slice
	index   map[string]int // where each key is; nil while the entries are sorted
}

// maxAdded is how many entries are inserted in order. More belong to a session that is being
// filled, for which building the index pays.
const maxAdded = 64

// find returns where key is, or where it belongs.
func (v *values) find(key string) (at int, found bool) {
	if v.index != nil {
		at, found = v.index[key]
		return at, found
	}
	return slices.BinarySearchFunc(v.entries, key, func(e entry, key string) int { return strings.Compare(e.key, key) })
}

// growth returns by how many bytes the encoded form grows, give or take a comma, if e is put
// where find has found its key or place.
func (v *values) growth(at int, found bool, e entry) int {
	if found {
		return len(e.raw) - len(v.entries[at].raw)
	}
	return e.size()
}

// put stores e where find has found its key or place.
func (v *values) put(at int, found bool, e entry) {
	switch {
	case found:
		v.entries[at].raw = e.raw
	case v.index == nil && v.added < maxAdded:
		v.entries = slices.Insert(v.entries, at, e)
		v.added++
	default:
		if v.index == nil {
			v.index = make(map[string]int, 2*len(v.entries))
			for i, known := range v.entries {
				v.index[known.key] = i
			}
		}
		v.index[e.key] = len(v.entries)
		v.entries = append(v.entries, e)
	}
}

// remove removes the entry that find has found.
func (v *values) remove(at int) {
	if v.index == nil {
		v.entries = slices.Delete(v.entries, at, at+1)
		return
	}
	last := len(v.entries) - 1
	delete(v.index, v.entries[at].key)
	if at != last {
		v.entries[at] = v.entries[last]
		v.index[v.entries[at].key] = at
	}
	v.entries = slices.Delete(v.entries, last, last+1)
}

// sorted returns the entries, sorted, and leaves them so.
func (v *values) sorted() []entry {
	if v.index != nil {
		sortByKey(v.entries)
		v.index, v.added = nil, 0
	}
	return v.entries
}

func sortByKey(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
}
