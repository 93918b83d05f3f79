package otellatchkey

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// A request that holds its session is counted, and its wait, its hold and its record are measured. Only the hold has
// the route.
func TestRequestThatHoldsItsSession(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{
		Session: "id", Label: "POST /cart", Method: "POST", Route: "/cart/{item}", Mode: middleware.Exclusive,
		Waited: 250 * time.Millisecond, Held: 2 * time.Second, Queue: 3, Behind: "GET /slow", Runs: 1, RoundTrips: 2,
		Bytes: 300, Outcome: "saved",
	})
	same(t, measured(t, reader),
		"latchkey.requests latchkey.mode=exclusive latchkey.outcome=saved sum=1",
		"latchkey.session.wait.duration latchkey.mode=exclusive latchkey.passed=false count=1 sum=0.25",
		"latchkey.session.hold.duration http.route=/cart/{item} latchkey.mode=exclusive latchkey.outcome=saved count=1 sum=2",
		"latchkey.record.size count=1 sum=300")
}

// A request to which the session was passed needs no round trip, and its record is not measured again.
func TestRequestToWhichTheSessionWasPassed(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{
		Mode: middleware.Lazy, Waited: time.Second, Held: time.Second, Passed: true, Runs: 1, Bytes: 300, Outcome: "saved",
	})
	same(t, measured(t, reader),
		"latchkey.requests latchkey.mode=lazy latchkey.outcome=saved sum=1",
		"latchkey.session.wait.duration latchkey.mode=lazy latchkey.passed=true count=1 sum=1",
		"latchkey.session.hold.duration latchkey.mode=lazy latchkey.outcome=saved count=1 sum=1")
}

// A request that only reads has neither waited nor held.
func TestRequestWithoutTheLock(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{Mode: middleware.ReadOnly, Route: "/", Runs: 1, RoundTrips: 1, Bytes: 5, Outcome: "unchanged"},
		&middleware.RequestEvent{Mode: middleware.Optimistic, Route: "/", Runs: 3, Outcome: "saved"})
	same(t, measured(t, reader),
		"latchkey.requests latchkey.mode=read_only latchkey.outcome=unchanged sum=1",
		"latchkey.requests latchkey.mode=optimistic latchkey.outcome=saved sum=1",
		"latchkey.request.reruns sum=2",
		"latchkey.record.size count=1 sum=5")
}

// The kind of a failure is the error.type. The error.type of a wait says why the request did not get its session: it
// may have waited for a session that has ended, and have begun another.
func TestRequestThatFails(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o,
		&middleware.RequestEvent{Waited: 10 * time.Second, Outcome: "failed", Err: errors.New("…"), Kind: "timeout", Holds: []middleware.Hold{{Kind: "timeout"}}},
		&middleware.RequestEvent{Waited: 3 * time.Second, Outcome: "began", Holds: []middleware.Hold{{Kind: "gone"}}},
		&middleware.RequestEvent{Waited: time.Microsecond, Outcome: "failed", Err: errors.New("…"), Kind: "too_many_waiters", Holds: []middleware.Hold{{Kind: "too_many_waiters"}}},
		&middleware.RequestEvent{Waited: time.Second, Held: time.Second, Outcome: "failed", Err: errors.New("…"), Kind: "too_large"},
		&middleware.RequestEvent{Outcome: "failed", Err: errors.New("of a kind that nobody has named")})
	same(t, measured(t, reader),
		"latchkey.requests error.type=timeout latchkey.mode=exclusive latchkey.outcome=failed sum=1",
		"latchkey.requests error.type=too_many_waiters latchkey.mode=exclusive latchkey.outcome=failed sum=1",
		"latchkey.requests error.type=too_large latchkey.mode=exclusive latchkey.outcome=failed sum=1",
		"latchkey.requests error.type=_OTHER latchkey.mode=exclusive latchkey.outcome=failed sum=1",
		"latchkey.requests latchkey.mode=exclusive latchkey.outcome=began sum=1",
		"latchkey.session.wait.duration error.type=gone latchkey.mode=exclusive latchkey.passed=false count=1 sum=3",
		"latchkey.session.wait.duration error.type=timeout latchkey.mode=exclusive latchkey.passed=false count=1 sum=10",
		"latchkey.session.wait.duration latchkey.mode=exclusive latchkey.passed=false count=1 sum=1",
		"latchkey.session.hold.duration latchkey.mode=exclusive latchkey.outcome=failed count=1 sum=1")
}

func TestCookiesThatOpenNoSession(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{Outcome: "began", UnknownKey: 1, Refused: 2, Dead: 3})
	same(t, measured(t, reader),
		"latchkey.requests latchkey.mode=exclusive latchkey.outcome=began sum=1",
		"latchkey.cookie.rejected latchkey.how=unknown_key sum=1",
		"latchkey.cookie.rejected latchkey.how=refused sum=2",
		"latchkey.cookie.rejected latchkey.how=dead sum=3")
}

// A request that has gone on after a failure, as by another Start, has not failed.
func TestARequestThatRecoveredHasNoErrorType(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	tell(o, &middleware.RequestEvent{Outcome: "saved", Kind: "timeout", Err: errors.New("…"), Waited: time.Second, Held: time.Second})
	same(t, slices.DeleteFunc(measured(t, reader), func(line string) bool { return !strings.Contains(line, "latchkey.requests") }),
		"latchkey.requests latchkey.mode=exclusive latchkey.outcome=saved sum=1")
}

// By convention a route begins with a slash: the pattern's host is not in it.
func TestTheRouteHasNoHost(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	for _, route := range []string{"shop.example/cart/{id}", "/cart/{id}"} {
		tell(o, &middleware.RequestEvent{Held: time.Second, Route: route, Outcome: "saved"})
	}
	same(t, slices.DeleteFunc(measured(t, reader), func(line string) bool { return !strings.Contains(line, "hold") }),
		"latchkey.session.hold.duration http.route=/cart/{id} latchkey.mode=exclusive latchkey.outcome=saved count=2 sum=2")
}

// Counters and histograms do not depend on the gauges, which a view may drop.
func TestWithoutGauges(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	drop := func(name string) sdkmetric.Option {
		return sdkmetric.WithView(sdkmetric.NewView(sdkmetric.Instrument{Name: name}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}))
	}
	o := New(Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), drop("latchkey.request.active"), drop("latchkey.session.*.longest"))})
	tell(o, &middleware.SessionEvent{What: "lost", How: "lease"}, &middleware.RequestEvent{Outcome: "saved", Held: time.Second})
	same(t, measured(t, reader),
		"latchkey.lock.lost latchkey.how=lease sum=1",
		"latchkey.requests latchkey.mode=exclusive latchkey.outcome=saved sum=1",
		"latchkey.session.hold.duration latchkey.mode=exclusive latchkey.outcome=saved count=1 sum=1",
		"latchkey.session.wait.duration latchkey.mode=exclusive latchkey.passed=false count=1 sum=0")
}

// The failures that an alert counts are there from the start: otherwise Prometheus would see no increase when they first
// happen.
func TestFailuresAreThereFromTheStart(t *testing.T) {
	t.Parallel()
	_, reader := metered(Options{})
	found := make(map[string]bool)
	for _, m := range metrics(t, reader) {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "latchkey.requests" {
			for _, p := range sum.DataPoints {
				mode, _ := p.Attributes.Value(modeKey)
				kind, _ := p.Attributes.Value("error.type")
				found[mode.AsString()+" "+kind.AsString()] = p.Value == 0
			}
		}
	}
	for _, want := range []string{"exclusive unavailable", "optimistic timeout", "lazy too_many_waiters", "read_only corrupt"} {
		if !found[want] {
			t.Errorf("there is no series of %q, or it is not 0", want)
		}
	}
}
