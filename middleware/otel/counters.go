package otellatchkey

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A counter is counted here, and added to OpenTelemetry's when metrics are collected: each Add of its SDK would cost a
// request ten times as much.
type counter struct {
	total metric.Int64Counter

	mu     sync.Mutex
	series map[attribute.Distinct]*count
}

// A count is what a series has counted since metrics were last collected. It is exported from the start, with 0: what
// appears with 1 does not rise for Prometheus.
type count struct {
	atomic.Int64
	attributes metric.MeasurementOption
}

func (c *count) record(_ context.Context, value float64) { c.Add(int64(value)) }

// counter makes a counter that flush knows.
func (m *meter) counter(name, unit, description string) *counter {
	c := &counter{
		total:  made(m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))),
		series: make(map[attribute.Distinct]*count),
	}
	m.counters = append(m.counters, c)
	return c
}

// of returns the series with the attributes.
func (c *counter) of(attributes ...attribute.KeyValue) *count {
	set := attribute.NewSet(attributes...)
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.series[set.Equivalent()]
	if !ok {
		n = &count{attributes: metric.WithAttributeSet(set)}
		c.series[set.Equivalent()] = n
	}
	return n
}

// flush adds what was counted since the last collection.
func (c *counter) flush(ctx context.Context) {
	c.mu.Lock()
	series := slices.Collect(maps.Values(c.series))
	c.mu.Unlock()
	for _, n := range series {
		c.total.Add(ctx, n.Swap(0), n.attributes)
	}
}
