//go:build !older

package app

import (
	"context"
	"net/http"

	"github.com/a2139e8d/latchkey/middleware"
	otellatchkey "github.com/a2139e8d/latchkey/middleware/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// observedPeers are Latchkey with an observer. Older versions, which -against builds, have none.
func observedPeers() []Peer {
	return []Peer{
		{Name: "noop", Title: "an observer that does nothing", Locks: true, Observed: true, Share: 0.98, Beside: Latchkey, open: observed(nothing{})},
		{Name: "metrics", Title: "OpenTelemetry's metrics", Locks: true, Observed: true, Share: 0.97, Beside: Latchkey, open: observed(metrics())},
		{Name: "spans", Title: "no observer, and a span of the server, of which 1 % are sampled", Locks: true, Observed: true, open: traced()},
		{Name: "traces", Title: "metrics, and traces of which 1 % are sampled", Locks: true, Observed: true, Share: 0.96, Beside: "spans", open: traced(metrics())},
	}
}

func observed(by ...middleware.Observer) func(Config) (backend, error) {
	return func(c Config) (backend, error) {
		return openLatchkeyWith(c, middleware.Options{Observers: by})
	}
}

type nothing struct{}

func (nothing) Observe(context.Context, middleware.Event) {}

func metrics() middleware.Observer {
	return otellatchkey.New(otellatchkey.Options{
		MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())),
	})
}

// traced also makes what otelhttp makes at least: a span of the server for each request. A server has that span
// without Latchkey, too.
func traced(by ...middleware.Observer) func(Config) (backend, error) {
	return func(c Config) (backend, error) {
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.TraceIDRatioBased(0.01))).Tracer("bench")
		b, err := observed(by...)(c)
		serve := b.serve
		b.serve = func(work func(*http.Request, values) int) http.Handler {
			handler := serve(work)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				ctx, span := tracer.Start(r.Context(), r.Method, trace.WithSpanKind(trace.SpanKindServer))
				defer span.End()
				handler.ServeHTTP(w, r.WithContext(ctx))
			})
		}
		return b, err
	}
}
