package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/a2139e8d/latchkey/internal/excerpt"
)

// Parse returns the values of an encoded form, without looking into them. It refuses what encoding/json would
// alter silently: text that is not valid UTF-8, and keys that occur twice or hold half a character.
func Parse(data []byte) (Values, error) {
	if found, ok := parseOwn(data); ok {
		return Values{changes: found, length: len(found), total: len(data) - len("{")}, nil
	}
	found, err := parseAny(data)
	v := Values{changes: found, length: len(found)}
	for _, e := range found {
		v.total += e.size()
	}
	return v, err
}

// parseAny is Parse for whatever may be stored.
func parseAny(data []byte) ([]entry, error) {
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
			return nil, fmt.Errorf("session: stored data: key %s: %w", excerpt.Of(quoted), err)
		}
		var raw string
		raw, rest = cutToken(rest)
		found = append(found, entry{key, raw})
	}
	slices.SortFunc(found, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for i := 1; i < len(found); i++ {
		if found[i].key == found[i-1].key {
			return nil, fmt.Errorf("session: stored data: key %q is there twice", excerpt.Of(found[i].key))
		}
	}
	return found, nil
}

// between is what may stand between a key and a value.
const between = " \t\r\n:,"

// cutToken cuts the next key or value off rest, which is what is left of a valid
// JSON object. It returns nothing at the object's end.
func cutToken(rest string) (token, after string) {
	rest = strings.TrimLeft(rest, between)
	end, _ := tokenEnd(rest)
	return rest[:end], rest[end:]
}

// tokenEnd returns where the key or value ends that s begins with, and how deep it is nested; 0
// where there is none.
func tokenEnd(s string) (end, deepest int) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			i = closingQuote(s, i)
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case depth == 0 && strings.IndexByte("}"+between, c) >= 0:
			return i, deepest
		case c == '}' || c == ']':
			depth--
		}
	}
	return 0, deepest
}

// closingQuote returns where the string ends that begins at i, or len(s) if it does not end. It
// goes from quote to quote, which for texts of a kilobyte takes a tenth of what going by
// characters does.
func closingQuote(s string, i int) int {
	for {
		next := strings.IndexByte(s[i+1:], '"')
		if next < 0 {
			return len(s)
		}
		i += 1 + next
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
