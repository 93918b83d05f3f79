package otellatchkey

import (
	"runtime"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// A census counts the sessions that are held in this process, who waits for which, and which are open. Two Sessions
// on one store both list the waiters, which count once. A hold in another process counts in that process.
func TestCensus(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	request := func(session, state string, ago time.Duration) middleware.Request {
		return middleware.Request{Session: session, State: state, Since: noon.Add(-ago)}
	}
	elsewhere := request("b", "holds", time.Hour)
	elsewhere.Process = "web-2 pid 7"
	waits := []middleware.Request{
		request("a", "waits", 3), request("a", "waits", 2), request("a", "waits", 1), elsewhere, request("b", "waits", 1),
		request("a", "holds", time.Minute), request("d", "holds", time.Second),
	}
	var c census
	c.add(append(waits, request("a", "open", time.Hour), request("c", "open", time.Hour)))
	c.add(append(waits, request("e", "open", time.Hour), request("f", "what a later version has", 1)))
	if len(c.held) != 2 || c.waiting() != 4 || c.open != 3 || c.longest() != 3 || c.oldest(noon) != time.Minute {
		t.Errorf("%d are held, %d wait, %d are open; the longest line has %d, the oldest hold is %v old",
			len(c.held), c.waiting(), c.open, c.longest(), c.oldest(noon))
	}
	if none := (&census{}); none.waiting() != 0 || none.longest() != 0 || none.oldest(noon) != 0 {
		t.Error("an empty census is not empty")
	}
}

// The requests of Sessions with two observers count once.
func TestSessionsAttachedTwice(t *testing.T) {
	t.Parallel()
	var a attached
	s := sessiontest.New(t, middleware.Options{}).Sessions
	a.add(s)
	a.add(s)
	if len(a.all) != 1 {
		t.Errorf("the Sessions counts %d times", len(a.all))
	}
	runtime.KeepAlive(s)
}

// A provider may be of a type whose values cannot all be compared.
func TestProvidersThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	type embedded struct{ metric.MeterProvider }
	type function struct {
		metric.MeterProvider
		_ func()
	}
	p := embedded{function{MeterProvider: noop.NewMeterProvider()}}
	for range 2 {
		if New(Options{MeterProvider: p}) == nil {
			t.Error("there is no observer")
		}
	}
}

// A provider and its observers that the program has dropped do not stay in memory.
func TestProvidersAreForgotten(t *testing.T) {
	t.Parallel()
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	New(Options{MeterProvider: p})
	gone := make(chan struct{})
	runtime.AddCleanup(p, func(gone chan struct{}) { close(gone) }, gone)
	p = nil
	for {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
