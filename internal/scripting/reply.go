package scripting

// A Reply is what a script returned. The zero value is no reply.
type Reply struct{ value any }

// Int returns the reply if it is a whole number.
func (r Reply) Int() (int64, bool) {
	n, ok := r.value.(int64)
	return n, ok
}

// Len is how many values the reply has, if it is an array.
func (r Reply) Len() int {
	values, _ := r.value.([]any)
	return len(values)
}

func (r Reply) at(i int) any {
	if values, _ := r.value.([]any); i < len(values) {
		return values[i]
	}
	return nil
}

// IntAt returns the ith value if it is a whole number.
func (r Reply) IntAt(i int) (int64, bool) {
	n, ok := r.at(i).(int64)
	return n, ok
}

// TextAt returns the ith value if it is a string.
func (r Reply) TextAt(i int) (string, bool) {
	switch v := r.at(i).(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	}
	return "", false
}

// BytesAt returns the ith value if it is a string, as bytes.
func (r Reply) BytesAt(i int) ([]byte, bool) {
	switch v := r.at(i).(type) {
	case string:
		return []byte(v), true
	case []byte:
		return v, true
	}
	return nil, false
}
