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

// The encoded form is one JSON object, its keys sorted, each value the bytes
// that Set made of it: equal sessions are equal bytes, and people can read them.

// parse splits data into its values without looking into them. It refuses what
// encoding/json would alter in silence: text that is not valid UTF-8, and keys
// that are there twice or hold half a character.
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
	object := string(data)                                             // the one copy: keys and values are parts of it
	found := make(values, 0, min(strings.Count(object, `":`), 1000)+1) // the handler may add one
	for quoted, rest := next(object[1:]); quoted != ""; quoted, rest = next(rest) {
		key, err := unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("session: stored data: key %s: %w", quoted, err)
		}
		var raw string
		raw, rest = next(rest)
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

// next cuts the next key or value off rest, which is what is left of a valid
// JSON object. It returns nothing at the object's end.
func next(rest string) (token, after string) {
	for rest != "" && isBetween(rest[0]) {
		rest = rest[1:]
	}
	depth, inString := 0, false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == '}' || isBetween(c)):
			return rest[:i], rest[i:]
		case c == '}' || c == ']':
			depth--
		}
	}
	return "", ""
}

// isBetween reports whether c may stand between a key and a value.
func isBetween(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ':', ',':
		return true
	}
	return false
}

// unquote returns the key that quoted is the JSON of.
func unquote(quoted string) (string, error) {
	if !strings.Contains(quoted, `\`) {
		return quoted[1 : len(quoted)-1], nil
	}
	var key string
	if err := json.Unmarshal([]byte(quoted), &key); err != nil {
		return "", err
	}
	// The decoder makes a U+FFFD of half a surrogate pair; a real one is in both.
	const replacement = "\uFFFD"
	if strings.Count(key, replacement) != strings.Count(quoted, replacement) {
		return "", errors.New("holds half a character")
	}
	return key, nil
}

// format is the inverse of parse. It does not use json.Marshal, which would
// compact and escape the values again instead of passing them on as they are.
func format(v values) []byte {
	size := len("{}")
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
	quoted, _ := encodeAny(key) // cannot fail: Set and parse only let valid keys in
	return append(b, quoted...)
}
