package otellatchkey

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// A meter makes instruments, and knows what must be done when metrics are collected.
type meter struct {
	metric.Meter
	counters []*counter
	batches  *batches
}

func newMeter(m metric.Meter) *meter { return &meter{Meter: m, batches: newBatches()} }

// record records measurements: those of a sampled request at once, so that its trace is their exemplar, and all others
// later.
func (m *meter) record(ctx context.Context, sampled bool, all ...measurement) {
	switch {
	case len(all) == 0:
	case !sampled:
		m.batches.add(all...)
	default:
		for _, one := range all {
			one.of.record(ctx, one.value)
		}
	}
}

// observe tells OpenTelemetry everything. It is called when metrics are collected.
func (m *meter) observe(into metric.Observer) {
	m.batches.flush() // first, since it counts, too
	for _, c := range m.counters {
		c.observe(into)
	}
}
