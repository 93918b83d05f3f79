package session

// The encoded form is one JSON object with sorted keys, each value the bytes that
// Set made of it: equal sessions are equal bytes, and people can read them.

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
