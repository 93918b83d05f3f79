package otellatchkey

import (
	"context"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A counter is counted here, and OpenTelemetry asks for it when metrics are collected: each Add of its SDK would cost a
// request ten times as much.
type counter struct {
	total metric.Int64ObservableCounter

	mu     sync.Mutex
	series map[attribute.Distinct]*count
}

// A count is a series. It is exported from the moment it is made, even while it is 0: if it first appeared with 1, Prometheus
// would see no increase. So most known series are made at the start. Those that tell of no fault are not, and are too many.
type count struct {
	atomic.Int64
	attributes metric.MeasurementOption
}

func (c *count) record(_ context.Context, value float64) { c.Add(int64(value)) }

// counter makes a counter that observe knows.
func (m *meter) counter(name, unit, description string) *counter {
	c := &counter{
		total:  made(m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))),
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

func (c *counter) observe(into metric.Observer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.series {
		into.ObserveInt64(c.total, n.Load(), n.attributes)
	}
}
