package otellatchkey

import (
	"context"
	"strings"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// waits are the buckets for the time that a request waits for a lock, in seconds, and holds those for the time that
// it has the lock. They reach from less than a round trip to a little more than the defaults of LockWait and MaxHold.
// A request that uses up LockWait, by default 10 s, waits a little longer: so 10.5 s is a bound, and 10 s is not.
var (
	waits = []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10.5, 15}
	holds = []float64{.0001, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 15, 30, 60, 90}
)

// requests are the metrics of RequestEvents.
type requests struct {
	meter                             *meter
	series                            *table[requestKey, requestSeries]
	size                              *buckets
	reruns, unknownKey, refused, dead *count
}

// A requestKey is what the attributes of a request depend on.
type requestKey struct {
	mode                 middleware.Mode
	outcome, kind, route string
	inVain               string // why its last wait was in vain
	passed, held         bool
}

type requestSeries struct {
	count      *count
	wait, hold *buckets
}

// failures are the kinds of failures that are no client's doing.
var failures = []string{"timeout", "too_many_waiters", "unavailable", "conflict", "lost", "deadline", "too_large", "corrupt", "read_only", "late", "other"}

func newRequests(m *meter) *requests {
	total := m.counter("latchkey.requests", "{request}", "Requests that used their session.")
	for mode := range modes {
		if mode == middleware.None { // it has no session that could fail
			continue
		}
		for _, kind := range failures {
			total.of(requestKey{mode: mode, outcome: "failed", kind: kind}.count()...)
		}
	}
	reruns := m.counter("latchkey.request.reruns", "{rerun}",
		"Further runs of handlers, since another request had changed the session during an Optimistic run.")
	rejected := m.counter("latchkey.cookie.rejected", "{cookie}", "Cookies and tokens that opened no session.")
	wait := m.histogram("latchkey.session.wait.duration", "s",
		"Time for which a request has waited for the lock of its session, with the round trips to Redis that acquire it.", waits...)
	hold := m.histogram("latchkey.session.hold.duration", "s",
		"Time for which a request has had the lock of its session.", holds...)
	size := m.histogram("latchkey.record.size", "By",
		"Size of a session's record that a request has read or stored by itself.",
		256, 1<<10, 4<<10, 16<<10, 64<<10, 256<<10, 512<<10, 1<<20)
	return &requests{
		meter:      m,
		series:     newRequestTable(total, wait, hold),
		size:       size.of(),
		reruns:     reruns.of(),
		unknownKey: rejected.of(howKey.String("unknown_key")),
		refused:    rejected.of(howKey.String("refused")),
		dead:       rejected.of(howKey.String("dead")),
	}
}

func newRequestTable(total *counter, wait, hold histogram) *table[requestKey, requestSeries] {
	outcomes, kinds, reasons, routes := words(16), words(32), words(32), texts(128)
	bound := func(k requestKey) requestKey {
		if _, ok := modes[k.mode]; !ok {
			k.mode = -1
		}
		k.outcome, k.kind, k.route = outcomes.word(k.outcome), kinds.word(k.kind), routes.word(k.route)
		k.inVain = reasons.word(k.inVain)
		return k
	}
	series := func(k requestKey) requestSeries {
		return requestSeries{total.of(k.count()...), wait.of(k.wait()...), hold.of(k.hold()...)}
	}
	full := func() requestSeries {
		return requestSeries{total.of(overflow), wait.of(overflow), hold.of(overflow)}
	}
	return newTable(bound, series, full)
}

func (k *requestKey) place() int {
	n := 7*mixed(k.outcome) + mixed(k.route) + 5*len(k.kind) + int(k.mode)
	if k.passed { // in a burst, for all requests but the first. That one would take their place
		n += 32
	}
	return n
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
	return appendErrorType(attributes, k.inVain)
}

// hold has the route, since it says which handler keeps others waiting. wait has no route: the server's own metrics
// know how long a route takes altogether.
func (k requestKey) hold() []attribute.KeyValue {
	attributes := []attribute.KeyValue{modeKey.String(modeName(k.mode)), outcomeKey.String(k.outcome)}
	if k.route != "" {
		attributes = append(attributes, semconv.HTTPRoute(k.route))
	}
	return attributes
}

// measure measures a request.
func (r *requests) measure(ctx context.Context, e *middleware.RequestEvent, sampled bool) {
	held := e.Held > 0
	inVain := reasonOf(e)
	key := requestKey{e.Mode, e.Outcome, kindOf(e), pathOf(e.Route), inVain, e.Passed, held}
	series := r.series.of(&key, key.place())
	var room [4]measurement // one for each append: a fifth would allocate
	all := append(room[:0], measurement{series.count, 1})
	if held || e.Waited > 0 && inVain != "too_many_waiters" { // a request that is refused at once has not waited
		all = append(all, measurement{series.wait, e.Waited.Seconds()})
	}
	if held {
		all = append(all, measurement{series.hold, e.Held.Seconds()})
	}
	if e.RoundTrips > 0 && e.Bytes > 0 { // a request to which the session was passed has neither read nor stored the record
		all = append(all, measurement{r.size, float64(e.Bytes)})
	}
	r.meter.record(ctx, sampled, all...)
	if e.Runs > 1 {
		r.reruns.Add(int64(e.Runs - 1))
	}
	if e.UnknownKey|e.Refused|e.Dead != 0 {
		r.unknownKey.Add(int64(e.UnknownKey))
		r.refused.Add(int64(e.Refused))
		r.dead.Add(int64(e.Dead))
	}
}

// kindOf is the error.type of a request. A request that has gone on after a failure, as by another Start, has none: its
// event still has the kind, but another outcome.
func kindOf(e *middleware.RequestEvent) string {
	switch {
	case e.Outcome != "failed":
		return ""
	case e.Kind == "" && e.Err != nil:
		return other
	}
	return e.Kind
}

// reasonOf says why the request has not got its session, if its last wait was in vain.
func reasonOf(e *middleware.RequestEvent) string {
	if len(e.Holds) == 0 {
		return ""
	}
	return e.Holds[len(e.Holds)-1].Kind
}

// pathOf returns a route without its host, as the convention wants it.
func pathOf(route string) string {
	return route[max(0, strings.IndexByte(route, '/')):]
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
