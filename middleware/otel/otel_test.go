package otellatchkey

import (
	"context"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	_ "github.com/a2139e8d/latchkey/middleware/sessiontest"
	"go.opentelemetry.io/otel/sdk/metric"
	_ "go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	_ "go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestX(t *testing.T) {
	_ = metric.NewMeterProvider
	_ = trace.NewTracerProvider
	_ = context.Background
	_ = middleware.New
}
