package lease

// worded is an error in other words, where the words of the error would say too much.
type worded struct {
	error
	words string
}

func (w worded) Error() string { return w.words }
func (w worded) Unwrap() error { return w.error }
