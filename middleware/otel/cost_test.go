package otellatchkey

import (
	"context"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/metric"
	nometric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// usualEvents are those of one exclusive request that is alone: it acquires its session, commits and releases it.
func usualEvents() []middleware.Event {
	now := time.Now()
	return []middleware.Event{
		&middleware.ExchangeEvent{Script: "take", Command: "EVALSHA", Commands: 1, Node: "127.0.0.1:6379", Began: now, Took: 90 * time.Microsecond},
		&middleware.ExchangeEvent{Script: "commit", Command: "EVALSHA", Commands: 1, Node: "127.0.0.1:6379", Holds: 1, Began: now, Took: 90 * time.Microsecond},
		&middleware.RequestEvent{
			Session: "id", Label: "POST /cart", Method: "POST", Route: "/cart", Mode: middleware.Exclusive,
			Arrived: now, Acquired: now, Committed: now, Done: now, Waited: 100 * time.Microsecond, Held: time.Millisecond,
			Holds: []middleware.Hold{{Asked: now, Acquired: now.Add(100 * time.Microsecond), Released: now.Add(time.Millisecond), Queue: 3}},
			Queue: 3, RoundTrips: 2, Runs: 1, Bytes: 300, Outcome: "saved",
		},
	}
}

// deep is a context as deep as that of a request behind a few middlewares.
func deep(ctx context.Context) context.Context {
	type key int
	for i := range 10 {
		ctx = context.WithValue(ctx, key(i), i)
	}
	return ctx
}

func meters() metric.MeterProvider {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

func spanned(sampler sdktrace.Sampler) context.Context {
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler)).Tracer("server")
	ctx, _ := tracer.Start(context.Background(), "POST /cart", trace.WithSpanKind(trace.SpanKindServer))
	return deep(ctx)
}

// BenchmarkRequest measures what a request costs: one that is alone, and one of a busy session, to which the session
// was passed on. In a sampled trace the cost includes the server's span.
func BenchmarkRequest(b *testing.B) {
	for name, meters := range map[string]metric.MeterProvider{"metrics": meters(), "no metrics": nometric.NewMeterProvider()} {
		for sampled, sampler := range map[string]sdktrace.Sampler{"no trace": nil, "unsampled": sdktrace.NeverSample(), "sampled": sdktrace.AlwaysSample()} {
			for busy, events := range map[string][]middleware.Event{"alone": usualEvents(), "passed on": usualEvents()[2:]} {
				b.Run(name+", "+sampled+", "+busy, func(b *testing.B) {
					b.ReportAllocs()
					o, ctx := New(Options{MeterProvider: meters}), deep(context.Background())
					if sampler != nil {
						ctx = spanned(sampler)
					}
					for b.Loop() {
						if sampled == "sampled" {
							ctx = spanned(sampler) // a span that gets longer and longer would be slow
						}
						for _, e := range events {
							o.Observe(ctx, e)
						}
					}
				})
			}
		}
	}
}

// A request that is not sampled costs no allocation, with metrics and without.
func TestNoAllocationWithoutASpan(t *testing.T) {
	for name, c := range map[string]struct {
		meters metric.MeterProvider
		ctx    context.Context
	}{
		"metrics":                  {meters(), deep(context.Background())},
		"metrics, unsampled trace": {meters(), spanned(sdktrace.NeverSample())},
		"unsampled trace":          {nometric.NewMeterProvider(), spanned(sdktrace.NeverSample())},
	} {
		o, events := New(Options{MeterProvider: c.meters}), usualEvents()
		observe := func() {
			for _, e := range events {
				o.Observe(c.ctx, e)
			}
		}
		for range 2 * batchSize { // from then on the attributes are known, and the batches have their memory
			observe()
		}
		if n := testing.AllocsPerRun(2*batchSize, observe); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
