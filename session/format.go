package session

import "slices"

// The encoded form is one JSON object with sorted keys, each value the bytes that
// Set made of it: equal sessions are equal bytes, and people can read them.

// appendTo appends the encoded form to b. It is the inverse of parse. It does not use json.Marshal,
// which would compact and escape the values again instead of passing them on as they are.
func (v *values) appendTo(b []byte) []byte {
	b = append(slices.Grow(b, v.size()), '{')
	comma := false
	for e := range v.each {
		if comma {
			b = append(b, ',')
		}
		comma = true
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
