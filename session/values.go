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

// values are a session's entries, sorted by key and no key twice, as they are
// stored. Up to some thousand, a slice is smaller and faster than a map.
type values []entry

// find returns where key is, or where it belongs.
func (v values) find(key string) (at int, found bool) {
	return slices.BinarySearchFunc(v, key, func(e entry, key string) int { return strings.Compare(e.key, key) })
}

// set stores raw under key, and reports whether that changed anything.
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

// delete removes key, and reports whether it was there.
func (v *values) delete(key string) bool {
	at, ok := v.find(key)
	if ok {
		*v = slices.Delete(*v, at, at+1)
	}
	return ok
}

// The encoded form is one JSON object with sorted keys, each value the bytes that
// Set made of it: equal sessions are equal bytes, and people can read them.

// parse splits data into its values without looking into them. It refuses what
// encoding/json would alter in silence: text that is not valid UTF-8, and keys
// that occur twice or hold half a character.
func parse(data []byte) (values, error) {
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
	found := make(values, 0, 8) // most sessions have no more
	object := string(data)      // the one copy: keys and values are parts of it
	for quoted, rest := cutToken(object[1:]); quoted != ""; quoted, rest = cutToken(rest) {
		key, err := unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("session: stored data: key %s: %w", quoted, err)
		}
		var raw string
		raw, rest = cutToken(rest)
		found = append(found, entry{key, raw})
	}
	slices.SortFunc(found, func(a, b entry) int { return strings.Compare(a.key, b.key) })
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
func format(v values) []byte {
	size := len("{}") // of 20 values this makes one allocation instead of nine
	for _, e := range v {
		size += len(`"":,`) + len(e.key) + len(e.raw)
	}
	b := append(make([]byte, 0, size), '{')
	for i, e := range v {
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
