package scripting

import "strconv"

// A Reply is what a script has answered. Whether a client returns text as a string or a []byte
// makes no difference here.
type Reply struct {
	values []any
	number any // in place of an array: an int64
}

// Int returns a reply that is one number.
func (r Reply) Int() (int64, bool) {
	n, ok := r.number.(int64)
	return n, ok
}

// Len is how many values an array has.
func (r Reply) Len() int { return len(r.values) }

// IntAt returns a value of an array that is a number, or the text of one.
func (r Reply) IntAt(i int) (int64, bool) {
	if i < len(r.values) {
		if n, ok := r.values[i].(int64); ok {
			return n, true
		}
	}
	text, _ := r.TextAt(i)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// TextAt returns a value of an array that is text.
func (r Reply) TextAt(i int) (string, bool) {
	b, ok := r.BytesAt(i)
	return string(b), ok
}

// BytesAt is TextAt for what may be large.
func (r Reply) BytesAt(i int) ([]byte, bool) {
	if i < len(r.values) {
		return Text(r.values[i])
	}
	return nil, false
}

// Text returns a reply that is text.
func Text(reply any) ([]byte, bool) {
	switch v := reply.(type) {
	case []byte:
		return v, true
	case string:
		return []byte(v), true
	}
	return nil, false
}
