package values

import "slices"

// AppendTo appends the encoded form to b. [Parse] is its inverse. It does not use json.Marshal, which would
// compact and escape the values again instead of passing them on as they are.
func (s *Snapshot) AppendTo(b []byte) []byte {
	b = append(slices.Grow(b, s.Size()), '{')
	comma := false
	for e := range s.values.each {
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
	quoted, _ := Encode(key) // cannot fail: Put and Parse get valid keys only
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
