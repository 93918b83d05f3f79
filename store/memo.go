package store

import "sync/atomic"

// A memo makes an argument of a number. That is not free, and the same number comes
// again and again.
type memo struct{ last atomic.Pointer[argument] }

type argument struct {
	n   int64
	any any
}

func (m *memo) of(n int64) any {
	last := m.last.Load()
	if last == nil || last.n != n {
		last = &argument{n, n}
		m.last.Store(last)
	}
	return last.any
}
