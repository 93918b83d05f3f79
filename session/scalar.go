package session

import (
	"strconv"
	"strings"
)

// Most values are a text, a number or a bool. For these there is a short way
// from and to JSON. It ends where there is the least doubt: what it does not
// take goes the way through encoding/json, which gives the same result.

// encodeScalar returns what encodeAny returns for v, or false.
func encodeScalar(v any) (raw string, ok bool) {
	switch v := v.(type) {
	case string:
		if plain(v) {
			return `"` + v + `"`, true
		}
	case int:
		return strconv.Itoa(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// decodeScalar does what decode does, or nothing and returns false.
func decodeScalar(raw string, v any) bool {
	switch v := v.(type) {
	case *string:
		if !strings.HasPrefix(raw, `"`) || strings.Contains(raw, `\`) {
			return false
		}
		*v = strings.Clone(raw[1 : len(raw)-1]) // else it would keep the whole record in memory
	case *int:
		n, err := strconv.Atoi(raw)
		if err != nil {
			return false
		}
		*v = n
	case *int64:
		n, err := strconv.ParseInt(raw, 10, 64)
		if err != nil {
			return false
		}
		*v = n
	case *bool:
		if raw != "true" && raw != "false" {
			return false
		}
		*v = raw == "true"
	default:
		return false
	}
	return true
}

// plain reports whether s needs but quotes to be JSON. What is not valid UTF-8
// shows as a U+FFFD here.
func plain(s string) bool {
	for _, r := range s {
		switch {
		case r < ' ', r == '"', r == '\\', r == '\u2028', r == '\u2029', r == '\uFFFD':
			return false
		}
	}
	return true
}
