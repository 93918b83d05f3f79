package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The encoded form is one JSON object, its keys sorted, each value the bytes
// that Set made of it: equal sessions are equal bytes, and people can read them.

// parse splits data into its values without looking into them. It refuses what
// encoding/json would alter in silence: text that is not valid UTF-8, and keys
// that are there twice or hold half a character.
func parse(data []byte) (map[string]json.RawMessage, error) {
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, errors.New("session: stored data is not a JSON object")
	}
	if !utf8.Valid(data) {
		return nil, errors.New("session: stored data is not valid UTF-8")
	}
	var object json.RawMessage // a copy, known to be valid JSON
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("session: stored data: %w", err)
	}
	values := make(map[string]json.RawMessage)
	for quoted, rest := next(object[1:]); len(quoted) > 0; quoted, rest = next(rest) {
		key, err := unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("session: stored data: key %s: %w", quoted, err)
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("session: stored data: key %s is there twice", quoted)
		}
		values[key], rest = next(rest)
	}
	return values, nil
}

// next cuts the next key or value off rest, which is what is left of a valid
// JSON object. It returns nothing at the object's end.
func next(rest []byte) (token, after []byte) {
	const between = " \t\r\n:,"
	rest = bytes.TrimLeft(rest, between)
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
		case depth == 0 && (c == '}' || strings.IndexByte(between, c) >= 0):
			return rest[:i:i], rest[i:]
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil, nil
}

// unquote returns the key that quoted is the JSON of.
func unquote(quoted []byte) (string, error) {
	if !bytes.Contains(quoted, []byte(`\`)) {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var key string
	if err := json.Unmarshal(quoted, &key); err != nil {
		return "", err
	}
	// The decoder makes a U+FFFD of half a surrogate pair; a real one is in both.
	const replacement = "\uFFFD"
	if strings.Count(key, replacement) != bytes.Count(quoted, []byte(replacement)) {
		return "", errors.New("holds half a character")
	}
	return key, nil
}

// format is the inverse of parse. It does not use json.Marshal, which would
// compact and escape the values again instead of passing them on as they are.
func format(values map[string]json.RawMessage) []byte {
	size := 2
	for key, raw := range values {
		size += len(key) + len(raw) + 4
	}
	buf := bytes.NewBuffer(make([]byte, 0, size))
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	buf.WriteByte('{')
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			buf.WriteByte(',')
		}
		_ = enc.Encode(key)         // cannot fail: Set and parse only let valid keys in
		buf.Truncate(buf.Len() - 1) // the encoder's line end
		buf.WriteByte(':')
		buf.Write(values[key])
	}
	buf.WriteByte('}')
	return buf.Bytes()
}
