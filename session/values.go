package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
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

// The encoded form is one JSON object with sorted keys, each value the bytes that
// Set made of it: equal sessions are equal bytes, and people can read them.

// parse splits data into its values without looking into them. It refuses what
// encoding/json would alter in silence: text that is not valid UTF-8, and keys
// that occur twice or hold half a character.
func parse(data []byte) ([]entry, error) {
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, errors.New("session: stored data is not a JSON object")
	}
	if !utf8.Valid(data) {
		return nil, errors.New("session: stored data is not valid UTF-8")
	}
	if !json.Valid(data) {
		var object json.RawMessage
		return nil, fmt.Errorf("session: stored data: %w", json.Unmarshal(data, &object)) // says what is wrong
	}
	found := make([]entry, 0, 8) // most sessions have no more
	object := string(data)       // the one copy: keys and values are parts of it
	for quoted, rest := cutToken(object[1:]); quoted != ""; quoted, rest = cutToken(rest) {
		key, err := unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("session: stored data: key %s: %w", quoted, err)
		}
		var raw string
		raw, rest = cutToken(rest)
		found = append(found, entry{key, raw})
	}
	sortByKey(found)
	for i := 1; i < len(found); i++ {
		if found[i].key == found[i-1].key {
			return nil, fmt.Errorf("session: stored data: key %q is there twice", found[i].key)
		}
	}
	return found, nil
}

// cutToken cuts the next key or value off rest, which is what is left of a valid
// JSON object. It returns nothing at the object's end.
func cutToken(rest string) (token, after string) {
	const between = " \t\r\n:," // what may stand between a key and a value
	rest = strings.TrimLeft(rest, between)
	depth := 0
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			i = closingQuote(rest, i)
		case c == '{' || c == '[':
			depth++
		case depth == 0 && strings.IndexByte("}"+between, c) >= 0:
			return rest[:i], rest[i:]
		case c == '}' || c == ']':
			depth--
		}
	}
	return "", ""
}

// closingQuote returns where the string ends that begins at i. It goes from quote to quote, which
// for texts of a kilobyte takes a tenth of what going by characters does.
func closingQuote(s string, i int) int {
	for {
		i += 1 + strings.IndexByte(s[i+1:], '"')
		if backslashes := i - len(strings.TrimRight(s[:i], `\`)); backslashes%2 == 0 {
			return i
		}
	}
}

// unquote returns the key whose JSON is quoted.
func unquote(quoted string) (string, error) {
	if !strings.Contains(quoted, `\`) {
		return quoted[1 : len(quoted)-1], nil
	}
	var key string
	if err := json.Unmarshal([]byte(quoted), &key); err != nil {
		return "", err
	}
	// The decoder turns half a surrogate pair into U+FFFD; a real one is in both.
	const replacement = "\uFFFD"
	if strings.Count(key, replacement) != strings.Count(quoted, replacement) {
		return "", errors.New("holds half a character")
	}
	return key, nil
}

// format is the inverse of parse. It does not use json.Marshal, which would
// compact and escape the values again instead of passing them on as they are.
func format(sorted []entry) []byte {
	size := len("{}") // of 20 values this makes one allocation instead of nine
	for _, e := range sorted {
		size += len(`"":,`) + len(e.key) + len(e.raw)
	}
	b := append(make([]byte, 0, size), '{')
	for i, e := range sorted {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendKey(b, e.key)
		b = append(b, ':')
		b = append(b, e.raw...)
	}
	return append(b, '}')
}

func appendKey(b []byte, key string) []byte {
	if plain(key) {
		b = append(b, '"')
		b = append(b, key...)
		return append(b, '"')
	}
	quoted, _ := encode(key) // cannot fail: Set and parse only let valid keys in
	return append(b, quoted...)
}

// plain reports whether s needs only quotes to be JSON. Invalid UTF-8 shows as U+FFFD here.
func plain(s string) bool {
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' || r == '\u2028' || r == '\u2029' || r == '\uFFFD' {
			return false
		}
	}
	return true
}
