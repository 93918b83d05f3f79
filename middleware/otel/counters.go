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

// A counter is counted here, and read when metrics are collected: an Add of OpenTelemetry's SDK costs a request ten
// times as much.
type counter struct {
	mu     sync.Mutex
	series map[attribute.Distinct]*count
}

// A count is a series of a counter. It is exported from the start, with 0: what appears with 1 does not rise for
// Prometheus.
type count struct {
	atomic.Int64
	attributes metric.MeasurementOption
}

func newCounter(m metric.Meter, name, unit, description string) *counter {
	c := &counter{series: make(map[attribute.Distinct]*count)}
	made(m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithInt64Callback(c.observe)))
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

func (c *counter) observe(_ context.Context, o metric.Int64Observer) error {
	c.mu.Lock()
	series := slices.Collect(maps.Values(c.series))
	c.mu.Unlock()
	for _, n := range series {
		o.Observe(n.Load(), n.attributes)
	}
	return nil
}
