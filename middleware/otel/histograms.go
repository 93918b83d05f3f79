package otellatchkey

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A histogram is one of OpenTelemetry's, and makes its series.
type histogram struct{ metric.Float64Histogram }

// buckets are a series of a histogram: with one combination of attributes.
type buckets struct {
	histogram  metric.Float64Histogram
	attributes []metric.RecordOption // in the form that Record takes without an allocation
}

// histogram makes a histogram with the upper bounds of its buckets.
func (m *meter) histogram(name, unit, description string, bounds ...float64) histogram {
	return histogram{made(m.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...)))}
}

// of returns the series with the attributes.
func (h histogram) of(attributes ...attribute.KeyValue) *buckets {
	return &buckets{h.Float64Histogram, []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}}
}

func (b *buckets) record(ctx context.Context, value float64) {
	b.histogram.Record(ctx, value, b.attributes...)
}
