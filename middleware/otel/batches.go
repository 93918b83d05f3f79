package otellatchkey

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// A measurement is a value for a series: for buckets, or for a count.
type measurement struct {
	of interface {
		record(context.Context, float64)
	}
	value float64
}

// batches have measurements that wait to be recorded together: by the goroutine that fills a batch, or when metrics are
// collected. To record a measurement, OpenTelemetry's SDK touches much memory and code. By the end of a request most of
// that has left the processor's caches. So a single measurement takes several times as long as one of a batch.
//
// Each processor has a batch of its own: what another processor has written to is not in this one's caches, either.
type batches struct {
	all  []*batch
	pool sync.Pool // of the batches: it gives a processor the batch that it has put back
	next atomic.Uint32
}

// batchSize is how many measurements fill a batch. To record them takes about 0.1 ms, for which the request that fills
// the batch waits.
const batchSize = 1024

func newBatches() *batches {
	b := &batches{all: make([]*batch, runtime.GOMAXPROCS(0))}
	for i := range b.all {
		b.all[i] = new(batch)
	}
	b.pool.New = func() any { return b.all[int(b.next.Add(1))%len(b.all)] } // perhaps one that another processor has
	return b
}

func (b *batches) add(all ...measurement) {
	one := b.pool.Get().(*batch)
	one.add(all...)
	b.pool.Put(one)
}

// flush records all measurements that wait. It also waits for goroutines that are recording, so that the last
// collection has everything.
func (b *batches) flush() {
	for _, one := range b.all {
		one.flush()
	}
}

type batch struct {
	recording sync.Mutex // held by the goroutine that records. It is locked before mu
	mu        sync.Mutex // guards the rest

	waiting []measurement
	spare   []measurement // memory for the next ones
}

func (b *batch) add(all ...measurement) {
	b.mu.Lock()
	if b.waiting == nil {
		b.waiting, b.spare = b.spare, nil
		if b.waiting == nil {
			b.waiting = make([]measurement, 0, batchSize+4) // an event has 4 at most
		}
	}
	b.waiting = append(b.waiting, all...)
	full := len(b.waiting) >= batchSize
	b.mu.Unlock()
	if full {
		b.flush()
	}
}

func (b *batch) flush() {
	b.recording.Lock()
	defer b.recording.Unlock()
	b.mu.Lock()
	all := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	if all == nil {
		return
	}
	for _, m := range all {
		m.of.record(context.Background(), m.value)
	}
	b.mu.Lock()
	b.spare = all[:0]
	b.mu.Unlock()
}
