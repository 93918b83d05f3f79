package otellatchkey

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Each event is measured once, whichever goroutines fill batches while metrics are collected.
func TestEachEventIsMeasuredOnce(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	const goroutines, each = 8, batchSize + 7
	var telling, collecting sync.WaitGroup
	done := make(chan struct{})
	collecting.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				_ = metrics(t, reader)
			}
		}
	})
	for range goroutines {
		telling.Go(func() {
			for range each {
				tell(o, &middleware.ExchangeEvent{Command: "GET", Commands: 1, Took: time.Second},
					&middleware.RequestEvent{Outcome: "touched", Waited: time.Second, Held: time.Second, RoundTrips: 1, Bytes: 100})
			}
		})
	}
	telling.Wait()
	close(done)
	collecting.Wait()
	measured := make(map[string]float64)
	for _, s := range all(t, reader) {
		measured[s.metric] += max(s.sum, float64(s.count))
	}
	for metric, want := range map[string]float64{
		"latchkey.requests": 1, "latchkey.session.wait.duration": 1, "latchkey.session.hold.duration": 1,
		"latchkey.record.size": 100, "db.client.operation.duration": 1,
	} {
		if want *= goroutines * each; measured[metric] != want {
			t.Errorf("%s: %v, want %v", metric, measured[metric], want)
		}
	}
}

// If a goroutine is recording a batch while metrics are collected, the collection has that batch.
func TestACollectionWaitsForABatch(t *testing.T) {
	t.Parallel()
	h := &slowHistogram{recording: make(chan struct{}), goOn: make(chan struct{})}
	b, one := &batch{}, measurement{histogram{h}.of(), 1}
	go func() { // ends with its batch
		for range batchSize {
			b.add(one)
		}
	}()
	<-h.recording
	time.AfterFunc(10*time.Millisecond, func() { close(h.goOn) })
	b.flush()
	if n := h.recorded.Load(); n != batchSize {
		t.Errorf("%d of %d were recorded", n, batchSize)
	}
}

// slowHistogram takes long for its first measurement.
type slowHistogram struct {
	noop.Float64Histogram
	recording, goOn chan struct{}
	recorded        atomic.Int64
}

func (h *slowHistogram) Record(context.Context, float64, ...metric.RecordOption) {
	if h.recorded.Add(1) == 1 {
		close(h.recording)
		<-h.goOn
	}
}
