package session

import "slices"

// values are a session's entries: a base, and what was changed since. The base never changes, so
// the requests of a hot session share it: instead of all entries, each copies only the changes that
// those before it have made. When these have become many, they are made part of the base.
type values struct {
	base    []entry // sorted by key
	changes table   // in place of those in the base; what was removed from the base has no raw
	shared  bool    // other sessions read the same changes, which are sorted then
	length  int     // how many entries there are
	total   int     // of their sizes
}

// newValues returns values of entries that are sorted by key, and not the caller's any more. size is
// that of their encoded form.
func newValues(sorted []entry, size int) values {
	v := values{changes: table{entries: sorted}, length: len(sorted)}
	if v.length > 0 {
		v.total = size - len("{")
	}
	return v
}

// size returns the size of the encoded form.
func (v *values) size() int { return encodedSize(v.total) }

// encodedSize returns the size of the encoded form of entries whose sizes make total: the last one
// has no comma.
func encodedSize(total int) int { return max(len("{}"), len("{")+total) }

func (v *values) get(key string) (raw string, found bool) {
	if at, changed := v.changes.find(key); changed {
		raw = v.changes.entries[at].raw
		return raw, raw != ""
	}
	if at, based := find(v.base, key); based {
		return v.base[at].raw, true
	}
	return "", false
}

// totalWith returns what total would be with e, for which get has returned was and found.
func (v *values) totalWith(e entry, was string, found bool) int {
	if found {
		return v.total + len(e.raw) - len(was)
	}
	return v.total + e.size()
}

// put stores e, for which get has returned was and found.
func (v *values) put(e entry, was string, found bool) {
	v.total = v.totalWith(e, was, found)
	if !found {
		v.length++
	}
	v.change(e)
}

// remove removes the entry for which get has returned was.
func (v *values) remove(key, was string) {
	v.total -= entry{key, was}.size()
	v.length--
	if _, based := find(v.base, key); based {
		v.change(entry{key: key})
		return
	}
	v.own()
	at, _ := v.changes.find(key)
	v.changes.remove(at)
}

func (v *values) change(e entry) {
	v.own()
	at, found := v.changes.find(e.key)
	v.changes.put(at, found, e)
}

// own copies changes that others read, too, with room for one more.
func (v *values) own() {
	if v.shared {
		entries := v.changes.entries
		v.changes.entries, v.shared = append(make([]entry, 0, len(entries)+1), entries...), false
	}
}

// share returns a copy for other sessions. From now on neither may change.
func (v *values) share() values {
	changes := v.changes.sorted()
	switch n := len(changes); {
	case len(v.base) == 0:
		v.base, v.changes = changes, table{}
	case n*n > 16*len(v.base): // so n new ones, one by one, copy n√n entries and not n²
		v.base, v.changes = slices.AppendSeq(make([]entry, 0, v.length), v.each), table{}
	}
	v.changes.added, v.shared = 0, true
	return *v
}

// each calls yield for the entries, sorted by key, until it returns false.
func (v *values) each(yield func(entry) bool) {
	base := v.base
	for _, changed := range v.changes.sorted() {
		at, found := find(base, changed.key)
		for _, e := range base[:at] {
			if !yield(e) {
				return
			}
		}
		if base = base[at:]; found {
			base = base[1:]
		}
		if changed.raw != "" && !yield(changed) {
			return
		}
	}
	for _, e := range base {
		if !yield(e) {
			return
		}
	}
}
