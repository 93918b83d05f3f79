package otellatchkey

import (
	"context"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// waits are the buckets for how long a request waits for a lock, in seconds, and holds those for how long it has it:
// from less than a round trip to the defaults of LockWait and MaxHold.
var (
	waits = []float64{.0001, .0005, .001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10}
	holds = []float64{.0001, .0005, .001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
)

// requests are the metrics of RequestEvents.
type requests struct {
	wait, hold                        metric.Float64Histogram
	size                              metric.Int64Histogram
	reruns, unknownKey, refused, dead *count
	series                            *table[requestKey, requestSeries]
	batch                             *batch[requestSample]
}

// A requestSample is what is measured of a request.
type requestSample struct {
	requestKey
	waited, hold time.Duration
	size         int // 0: it is not measured
}

// A requestKey is what the attributes of a request depend on.
type requestKey struct {
	mode                 middleware.Mode
	outcome, kind, route string
	passed, held         bool
}

type requestSeries struct {
	count      *count
	wait, hold []metric.RecordOption
}

func newRequests(m *meter) *requests {
	total := m.counter("latchkey.requests", "{request}", "Requests that used their session.")
	reruns := m.counter("latchkey.request.reruns", "{rerun}",
		"Further runs of handlers, since another request had changed the session during an Optimistic run.")
	rejected := m.counter("latchkey.cookie.rejected", "{cookie}", "Cookies and tokens that opened no session.")
	r := &requests{
		wait: made(m.Float64Histogram("latchkey.session.wait.duration", metric.WithUnit("s"),
			metric.WithDescription("Time for which a request has waited for the lock of its session, with the exchanges with Redis that acquire it."),
			metric.WithExplicitBucketBoundaries(waits...))),
		hold: made(m.Float64Histogram("latchkey.session.hold.duration", metric.WithUnit("s"),
			metric.WithDescription("Time for which a request has had the lock of its session."),
			metric.WithExplicitBucketBoundaries(holds...))),
		size: made(m.Int64Histogram("latchkey.record.size", metric.WithUnit("By"),
			metric.WithDescription("Size of a session's record that a request has read or stored by itself."),
			metric.WithExplicitBucketBoundaries(256, 1<<10, 4<<10, 16<<10, 64<<10, 256<<10, 512<<10, 1<<20))),
		reruns:     reruns.of(),
		unknownKey: rejected.of(howKey.String("unknown_key")),
		refused:    rejected.of(howKey.String("refused")),
		dead:       rejected.of(howKey.String("dead")),
		series:     newRequestTable(total),
	}
	r.batch = &batch[requestSample]{measure: func(s requestSample) { r.record(context.Background(), s) }}
	m.batches = append(m.batches, r.batch)
	return r
}

func newRequestTable(total *counter) *table[requestKey, requestSeries] {
	outcomes, kinds, routes := words(16), words(32), texts(128)
	bound := func(k requestKey) requestKey {
		if _, ok := modes[k.mode]; !ok {
			k.mode = -1
		}
		k.outcome, k.kind, k.route = outcomes.word(k.outcome), kinds.word(k.kind), routes.word(k.route)
		return k
	}
	series := func(k requestKey) requestSeries {
		return requestSeries{total.of(k.count()...), recordOf(k.wait()...), recordOf(k.hold()...)}
	}
	full := func() requestSeries {
		return requestSeries{total.of(overflow), recordOf(overflow), recordOf(overflow)}
	}
	return newTable(bound, series, full)
}

func (k requestKey) count() []attribute.KeyValue {
	attributes := []attribute.KeyValue{modeKey.String(modeName(k.mode)), outcomeKey.String(k.outcome)}
	return appendErrorType(attributes, k.kind)
}

// wait has an error.type if the request did not get its session.
func (k requestKey) wait() []attribute.KeyValue {
	attributes := []attribute.KeyValue{modeKey.String(modeName(k.mode)), passedKey.Bool(k.passed)}
	if k.held {
		return attributes
	}
	return appendErrorType(attributes, k.kind)
}

// hold has the route, since it says which handler keeps others waiting. How long each route waits is not asked of
// this metric: the server's own metrics know how long it takes altogether.
func (k requestKey) hold() []attribute.KeyValue {
	attributes := []attribute.KeyValue{modeKey.String(modeName(k.mode)), outcomeKey.String(k.outcome)}
	if k.route != "" {
		attributes = append(attributes, semconv.HTTPRoute(k.route))
	}
	return attributes
}

// measure measures a request: later, unless it is sampled, which its measurements have as an exemplar.
func (r *requests) measure(ctx context.Context, e *middleware.RequestEvent, sampled bool) {
	s := requestSample{requestKey{e.Mode, e.Outcome, kindOf(e), e.Route, e.Passed, e.Held > 0}, e.Waited, e.Held, 0}
	if e.RoundTrips > 0 { // not for those that a session was passed to: a hot session has one record
		s.size = e.Bytes
	}
	if sampled {
		r.record(ctx, s)
	} else {
		r.batch.add(s)
	}
	if e.Runs > 1 {
		r.reruns.Add(int64(e.Runs - 1))
	}
	if e.UnknownKey|e.Refused|e.Dead != 0 {
		r.unknownKey.Add(int64(e.UnknownKey))
		r.refused.Add(int64(e.Refused))
		r.dead.Add(int64(e.Dead))
	}
}

func (r *requests) record(ctx context.Context, s requestSample) {
	series := r.series.of(s.requestKey)
	series.count.Add(1)
	if s.held || s.waited > 0 {
		r.wait.Record(ctx, s.waited.Seconds(), series.wait...)
	}
	if s.held {
		r.hold.Record(ctx, s.hold.Seconds(), series.hold...)
	}
	if s.size > 0 {
		r.size.Record(ctx, int64(s.size))
	}
}

// kindOf is the error.type of a request.
func kindOf(e *middleware.RequestEvent) string {
	if e.Kind == "" && e.Err != nil {
		return other
	}
	return e.Kind
}

var modes = map[middleware.Mode]string{
	middleware.Exclusive: "exclusive", middleware.ReadOnly: "read_only", middleware.Optimistic: "optimistic",
	middleware.Lazy: "lazy", middleware.None: "none",
}

func modeName(m middleware.Mode) string {
	if name, ok := modes[m]; ok {
		return name
	}
	return other
}
