// Package otellatchkey makes metrics and spans of what Latchkey's sessions do, by OpenTelemetry's conventions.
//
// Import it with its name, as editors do by themselves:
//
//	import otellatchkey "github.com/a2139e8d/latchkey/middleware/otel"
//
// The directory's README.md lists the metrics and spans, and has alerts for Prometheus and a dashboard for Grafana.
package otellatchkey

import (
	"context"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// The files: requests.go, exchanges.go and sessions.go make metrics of the three kinds of events, and now.go makes gauges
// of the requests that are under way. batches.go keeps measurements until there are many, for meter.go, counters.go and
// histograms.go. spans.go makes spans. bounds.go keeps the number of series bounded, whatever the events have in them.
// failures.go and names.go have the values and names that several of these share.

// scope names this package in what it exports.
const scope = "github.com/a2139e8d/latchkey/middleware/otel"

// Options are useful as they are.
type Options struct {
	// MeterProvider gets the metrics; default otel.GetMeterProvider(). A noop.MeterProvider switches metrics off.
	MeterProvider metric.MeterProvider
	// TracerProvider gets the spans; default: the provider of the span that the request's context has. A
	// noop.TracerProvider switches spans off.
	TracerProvider trace.TracerProvider
	// LeaveRedis leaves the spans of the round trips to Redis to the instrumentation of the Redis client, such as
	// redisotel. Without it they would be there twice. The metric of the round trips stays: see the directory's README.md.
	LeaveRedis bool
	// SessionID adds the public ID of the session to the server's span, as session.id.
	SessionID bool
}

// New returns an observer for the Options of package middleware. It makes the metrics and spans that the directory's
// README.md lists. It may observe several Sessions, and adds up their numbers. Sessions that share a store must share
// the observer: two would both count what belongs to no request.
//
// Spans are made only if the request's context has a sampled span of the server, such as that of
// otelhttp.NewHandler(sessions.Handler(mux), "server"). If an instrument cannot be made, OpenTelemetry's error handler is
// told, and New returns an observer without it.
func New(o Options) middleware.Observer {
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	m := newMeter(meterOf(o.MeterProvider))
	attached, first := attachedTo(o.MeterProvider)
	by := &observer{
		options:   o,
		requests:  newRequests(m),
		exchanges: newExchanges(m),
		sessions:  newSessions(m),
		attached:  attached,
	}
	g := newGauges(m)
	all := []metric.Observable{g.active, g.queue, g.hold}
	for _, c := range m.counters {
		all = append(all, c.total)
	}
	made(m.RegisterCallback(func(_ context.Context, into metric.Observer) error {
		m.observe(into)
		if first {
			g.observe(into, attached.count())
		}
		return nil
	}, all...))
	return by
}

// meterOf returns this package's meter.
func meterOf(p metric.MeterProvider) metric.Meter {
	return p.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
}

type observer struct {
	options   Options
	requests  *requests
	exchanges *exchanges
	sessions  sessions
	attached  *attached
}

// Attach is called by middleware.New.
func (o *observer) Attach(s *middleware.Sessions) { o.attached.add(s) }

// Observe is called by package middleware.
func (o *observer) Observe(ctx context.Context, e middleware.Event) {
	span := trace.SpanFromContext(ctx)
	sampled := span.SpanContext().IsSampled()
	switch e := e.(type) {
	case *middleware.RequestEvent:
		o.requests.measure(ctx, e, sampled)
	case *middleware.ExchangeEvent:
		o.exchanges.measure(ctx, e, sampled)
	case *middleware.SessionEvent:
		o.sessions.measure(e)
	}
	if sampled && !span.SpanContext().IsRemote() {
		o.trace(ctx, span, e)
	}
}

// made reports an error of OpenTelemetry as OpenTelemetry wants it. The instrument works nevertheless, or does nothing.
func made[I any](instrument I, err error) I {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}
