package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// The encoded form is one JSON object, its keys sorted, each value the bytes
// that Set made of it: equal sessions are equal bytes, and people can read them.

// parse splits data into its values without looking into them.
func parse(data []byte) (map[string]json.RawMessage, error) {
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, errors.New("session: stored data is not a JSON object")
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("session: stored data: %w", err)
	}
	return values, nil
}

// format is the inverse of parse. It does not use json.Marshal, which would
// compact and escape the values again instead of passing them on as they are.
func format(values map[string]json.RawMessage) []byte {
	size := 2
	for key, raw := range values {
		size += len(key) + len(raw) + 4
	}
	data := append(make([]byte, 0, size), '{')
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			data = append(data, ',')
		}
		quoted, _ := encode(key) // cannot fail: Set and parse only let valid keys in
		data = append(data, quoted...)
		data = append(data, ':')
		data = append(data, values[key]...)
	}
	return append(data, '}')
}
