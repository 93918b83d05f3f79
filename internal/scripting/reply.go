package scripting

import "strconv"

// A Reply is what a script has answered. Some clients return a string where others return a
// []byte, which makes no difference here.
type Reply struct{ value any }

// Int returns a reply that is one number.
func (r Reply) Int() (int64, bool) {
	n, ok := r.value.(int64)
	return n, ok
}

// Len is how many values an array has.
func (r Reply) Len() int {
	values, _ := r.value.([]any)
	return len(values)
}

func (r Reply) at(i int) any {
	if i >= r.Len() {
		return nil
	}
	return r.value.([]any)[i]
}

// IntAt returns a value of an array that is a number, or the text of one.
func (r Reply) IntAt(i int) (int64, bool) {
	if n, ok := r.at(i).(int64); ok {
		return n, true
	}
	text, _ := r.TextAt(i)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// TextAt returns a value of an array that is text.
func (r Reply) TextAt(i int) (string, bool) {
	if text, ok := r.at(i).(string); ok {
		return text, true
	}
	b, ok := r.at(i).([]byte)
	return string(b), ok
}

// BytesAt is TextAt for what may be large.
func (r Reply) BytesAt(i int) ([]byte, bool) {
	if b, ok := r.at(i).([]byte); ok {
		return b, true
	}
	text, ok := r.at(i).(string)
	return []byte(text), ok
}
