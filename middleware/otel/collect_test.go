package otellatchkey

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The tests expect the SDK's defaults. Environment variables could change these: whoever runs the tests may have set
// some for another program.
func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "OTEL_") {
			_ = os.Unsetenv(name)
		}
	}
	m.Run()
}

// metered returns an observer and the reader of its metrics.
func metered(o Options) (middleware.Observer, *sdkmetric.ManualReader) {
	reader := sdkmetric.NewManualReader()
	o.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	return New(o), reader
}

// tell tells an observer of events outside of any trace.
func tell(o middleware.Observer, events ...middleware.Event) {
	for _, e := range events {
		o.Observe(context.Background(), e)
	}
}

func metrics(t *testing.T, reader sdkmetric.Reader) []metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.ScopeMetrics) != 1 || all.ScopeMetrics[0].Scope.Name != scope {
		t.Fatalf("the scopes are %v", all.ScopeMetrics)
	}
	return all.ScopeMetrics[0].Metrics
}

// A series is a time series of a metric, with its number of measurements and their sum. A counter has only the sum.
type series struct {
	metric     string
	attributes attribute.Set
	count      uint64
	sum        float64
}

func (s series) String() string {
	text := s.metric
	for _, a := range s.attributes.ToSlice() {
		text += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
	}
	if s.count > 0 {
		text += fmt.Sprintf(" count=%d", s.count)
	}
	return text + fmt.Sprintf(" sum=%g", s.sum)
}

// all returns the series that have a measurement, or are exported although they have none.
func all(t *testing.T, reader sdkmetric.Reader) (found []series) {
	t.Helper()
	for _, m := range metrics(t, reader) {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				found = append(found, series{m.Name, p.Attributes, 0, float64(p.Value)})
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				found = append(found, series{m.Name, p.Attributes, 0, float64(p.Value)})
			}
		case metricdata.Gauge[float64]:
			for _, p := range data.DataPoints {
				found = append(found, series{m.Name, p.Attributes, 0, p.Value})
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				found = append(found, series{m.Name, p.Attributes, p.Count, float64(p.Sum)})
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				found = append(found, series{m.Name, p.Attributes, p.Count, p.Sum})
			}
		default:
			t.Fatalf("%s is a %T", m.Name, data)
		}
	}
	return found
}

// measured returns the lines of the series that are not 0.
func measured(t *testing.T, reader sdkmetric.Reader) (lines []string) {
	t.Helper()
	for _, s := range all(t, reader) {
		if s.count > 0 || s.sum != 0 {
			lines = append(lines, s.String())
		}
	}
	return lines
}

// same compares lines in any order.
func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
