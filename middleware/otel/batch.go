package otellatchkey

import "sync"

// batchSize is how many events wait to be measured at most. More would not be faster, and the request whose event fills the
// batch would be later.
const batchSize = 64

// A batch has events that wait to be measured together, by the goroutine whose event fills it, or when metrics are
// collected. OpenTelemetry's SDK touches much memory for each measurement. After everything else that a request does, most
// of that memory has left the processor's caches. So one measurement alone takes several times as long as one of many.
type batch[T any] struct {
	measure func(T) // called with turn held

	turn sync.Mutex // of the goroutine that measures. It is locked before mu
	mu   sync.Mutex // guards the rest

	waiting []T
	spare   []T // memory for the next ones
}

func (b *batch[T]) add(event T) {
	b.mu.Lock()
	if b.waiting == nil {
		b.waiting, b.spare = b.spare, nil
		if b.waiting == nil {
			b.waiting = make([]T, 0, batchSize)
		}
	}
	b.waiting = append(b.waiting, event)
	full := len(b.waiting) == batchSize
	b.mu.Unlock()
	if full {
		b.flush()
	}
}

// flush measures what waits. What another goroutine is measuring is measured when flush returns, so that the last
// collection has everything.
func (b *batch[T]) flush() {
	b.turn.Lock()
	defer b.turn.Unlock()
	b.mu.Lock()
	events := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	if events == nil {
		return
	}
	for _, e := range events {
		b.measure(e)
	}
	clear(events) // for the garbage collector
	b.mu.Lock()
	b.spare = events[:0]
	b.mu.Unlock()
}
