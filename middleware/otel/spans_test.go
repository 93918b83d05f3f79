package otellatchkey

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/codes"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// sampled returns the context of a request whose server records a span, and a function that ends this span and
// returns all spans, the server's last.
func sampled(t *testing.T) (context.Context, func() []sdktrace.ReadOnlySpan) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	ctx, server := provider.Tracer("server").Start(t.Context(), "POST /cart", trace.WithSpanKind(trace.SpanKindServer))
	return ctx, func() []sdktrace.ReadOnlySpan {
		server.End()
		return spans.Ended()
	}
}

// The trace of a sampled request is the exemplar of its measurements.
func TestExemplar(t *testing.T) {
	t.Parallel()
	o, reader := metered(Options{})
	ctx, _ := sampled(t)
	o.Observe(ctx, &middleware.RequestEvent{Outcome: "saved", Held: time.Second})
	want := trace.SpanContextFromContext(ctx).TraceID()
	for _, m := range metrics(t, reader) {
		if m.Name != "latchkey.session.hold.duration" {
			continue
		}
		exemplars := m.Data.(metricdata.Histogram[float64]).DataPoints[0].Exemplars
		if len(exemplars) != 1 || trace.TraceID(exemplars[0].TraceID) != want {
			t.Errorf("the exemplars are %+v, want one of the trace %v", exemplars, want)
		}
		return
	}
	t.Error("the hold is not measured")
}

// traced returns an observer without metrics.
func traced(o Options) middleware.Observer {
	o.MeterProvider = noopmetric.NewMeterProvider()
	return New(o)
}

// lines describes spans: kind, name, when they start and end in milliseconds after a time, their status, and what is
// in them.
func lines(spans []sdktrace.ReadOnlySpan, after time.Time) (all []string) {
	for _, s := range spans {
		line := fmt.Sprintf("%s %q", s.SpanKind(), s.Name())
		if s.SpanKind() != trace.SpanKindServer {
			line += fmt.Sprintf(" %d–%d", s.StartTime().Sub(after).Milliseconds(), s.EndTime().Sub(after).Milliseconds())
		}
		if s.Status().Code == codes.Error {
			line += " failed" + s.Status().Description
		}
		for _, a := range s.Attributes() {
			line += fmt.Sprintf(" %s=%s", a.Key, a.Value.String())
		}
		for _, e := range s.Events() {
			line += fmt.Sprintf(" event=%q", e.Name)
			for _, a := range e.Attributes {
				line += fmt.Sprintf(" (%s=%s)", a.Key, a.Value.String())
			}
		}
		all = append(all, line)
	}
	return all
}

// An exclusive request waits for another one, and is then passed the session in Redis. Its trace has the wait, the
// hold and the exchanges with Redis as children of the server's span.
func TestTraceOfARequest(t *testing.T) {
	t.Parallel()
	ctx, ended := sampled(t)
	o := traced(Options{})
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	for _, e := range []middleware.Event{
		&middleware.ExchangeEvent{
			Script: "take", Command: "EVALSHA", Commands: 1, Node: "redis:6379", Sent: 100, Received: 400, Began: at(28), Took: 2 * time.Millisecond,
		},
		&middleware.ExchangeEvent{
			Script: "commit", Command: "SET", Commands: 2, Node: "redis:7000", Database: "3", Holds: 1, Sent: 500, Received: 20, Began: at(80), Took: 10 * time.Millisecond,
		},
		&middleware.ExchangeEvent{Command: "HMGET", Commands: 2, Node: "redis:7000", Began: at(90), Took: time.Millisecond},
		&middleware.SessionEvent{Session: "id", What: "renewed", How: "login", Time: at(90)},
		&middleware.SessionEvent{Session: "id", What: "ended_open", Time: at(90)},
		&middleware.RequestEvent{
			Session: "id", Label: "POST /login", Method: "POST", Route: "/login", Mode: middleware.Exclusive,
			Arrived: at(0), Acquired: at(30), Committed: at(90), Done: at(91), Waited: 30 * time.Millisecond, Held: 60 * time.Millisecond,
			Holds: []middleware.Hold{{Asked: at(0), Acquired: at(30), Released: at(90), Queue: 2, Behind: "GET /slow", BehindProcess: "web-2 pid 7"}},
			Queue: 2, Behind: "GET /slow", BehindProcess: "web-2 pid 7", Runs: 1, RoundTrips: 2, Bytes: 300, Outcome: "renewed",
		},
	} {
		o.Observe(ctx, e)
	}
	spans := ended()
	same(t, lines(spans, start),
		`client "EVALSHA take" 28–30 db.system.name=redis db.operation.name=EVALSHA db.stored_procedure.name=take server.address=redis latchkey.redis.sent=100 latchkey.redis.received=400`,
		`client "PIPELINE commit" 80–90 db.system.name=redis db.operation.name=PIPELINE db.stored_procedure.name=commit db.namespace=3 server.address=redis server.port=7000 latchkey.redis.sent=500 latchkey.redis.received=20 db.operation.batch.size=2 latchkey.commit.requests=1`,
		`client "PIPELINE redis:7000" 90–91 db.system.name=redis db.operation.name=PIPELINE server.address=redis server.port=7000 latchkey.redis.sent=0 latchkey.redis.received=0 db.operation.batch.size=2`,
		`internal "session hold" 30–90 latchkey.mode=exclusive latchkey.outcome=renewed`,
		`internal "session wait" 0–30 latchkey.mode=exclusive latchkey.queue.length=2 latchkey.behind.label=GET /slow latchkey.behind.process=web-2 pid 7`,
		`server "POST /cart" latchkey.mode=exclusive latchkey.outcome=renewed latchkey.wait.duration=0.03 latchkey.hold.duration=0.06 latchkey.passed=false latchkey.runs=1 latchkey.round_trips=2 latchkey.record.size=300 event="session renewed" (latchkey.how=login) event="session ended_open"`)
	server := spans[len(spans)-1]
	for _, s := range spans[:len(spans)-1] {
		if s.Parent().SpanID() != server.SpanContext().SpanID() || s.InstrumentationScope().Name != scope {
			t.Errorf("%q is a child of %v, by %v", s.Name(), s.Parent().SpanID(), s.InstrumentationScope())
		}
	}
}

// A request that waited in vain has a wait and no hold. Its error's text is not in the trace.
func TestTraceOfARequestThatFails(t *testing.T) {
	t.Parallel()
	ctx, ended := sampled(t)
	o := traced(Options{})
	start := time.Now()
	o.Observe(ctx, &middleware.ExchangeEvent{
		Script: "take", Command: "EVALSHA", Commands: 1, Status: "NOPERM", Began: start, Took: time.Millisecond,
	})
	o.Observe(ctx, &middleware.RequestEvent{
		Method: "POST", Arrived: start, Done: start.Add(time.Second), Waited: time.Second, Runs: 0,
		Holds: []middleware.Hold{{Asked: start, Released: start.Add(time.Second), Kind: "timeout"}}, Outcome: "failed", Err: errors.New("…"), Kind: "timeout",
	})
	same(t, lines(ended(), start),
		`client "EVALSHA take" 0–1 failed db.system.name=redis db.operation.name=EVALSHA db.stored_procedure.name=take db.response.status_code=NOPERM error.type=NOPERM latchkey.redis.sent=0 latchkey.redis.received=0`,
		`internal "session wait" 0–1000 failed latchkey.mode=exclusive latchkey.queue.length=0 error.type=timeout`,
		`server "POST /cart" latchkey.mode=exclusive latchkey.outcome=failed latchkey.wait.duration=1 latchkey.hold.duration=0 latchkey.passed=false latchkey.runs=0 latchkey.round_trips=0 latchkey.record.size=0 latchkey.error.type=timeout`)
}

// A request that writes in mode Optimistic asks for the lock at its commit, and one that opens its session again asks
// anew. Each wait and each hold is a span of its own, with its own times: in between the request holds nothing. What
// has become of the session, and what has failed, belongs to the last of them.
func TestTraceOfSeveralHolds(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	first := middleware.Hold{Asked: at(100), Acquired: at(130), Released: at(140), Behind: "GET /slow"}
	inVain := middleware.Hold{Asked: at(200), Released: at(300), Behind: "GET /other", Kind: "timeout"}
	second := middleware.Hold{Asked: at(400), Acquired: at(410), Released: at(500), Queue: 3}
	const (
		firstWait  = `internal "session wait" 100–130 latchkey.mode=optimistic latchkey.queue.length=0 latchkey.behind.label=GET /slow`
		vainWait   = `internal "session wait" 200–300 failed latchkey.mode=optimistic latchkey.queue.length=0 latchkey.behind.label=GET /other error.type=timeout`
		secondWait = `internal "session wait" 400–410 latchkey.mode=optimistic latchkey.queue.length=3`
	)
	for name, c := range map[string]struct {
		event middleware.RequestEvent
		spans []string
	}{
		"opened again": {middleware.RequestEvent{Outcome: "saved", Kind: "timeout", Holds: []middleware.Hold{first, inVain, second}}, []string{
			firstWait, `internal "session hold" 130–140 latchkey.mode=optimistic`, vainWait,
			secondWait, `internal "session hold" 410–500 latchkey.mode=optimistic latchkey.outcome=saved`,
		}},
		"its second commit fails": {middleware.RequestEvent{Outcome: "failed", Kind: "lost", Holds: []middleware.Hold{first, second}}, []string{
			firstWait, `internal "session hold" 130–140 latchkey.mode=optimistic`,
			secondWait, `internal "session hold" 410–500 failed latchkey.mode=optimistic latchkey.outcome=failed error.type=lost`,
		}},
		"opened again in vain": {middleware.RequestEvent{Outcome: "failed", Kind: "timeout", Holds: []middleware.Hold{first, inVain}}, []string{
			firstWait, `internal "session hold" 130–140 latchkey.mode=optimistic`,
			vainWait,
		}},
		"it only reads": {middleware.RequestEvent{Outcome: "unchanged", Acquired: at(1), Committed: at(500)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, ended := sampled(t)
			e := c.event
			e.Mode, e.Arrived, e.Done = middleware.Optimistic, start, at(600)
			traced(Options{}).Observe(ctx, &e)
			spans := ended()
			same(t, lines(spans[:len(spans)-1], start), c.spans...)
		})
	}
}

// The server's span of a request that failed before it came to the router has the route.
func TestTraceOfARefusedRequest(t *testing.T) {
	t.Parallel()
	ctx, ended := sampled(t)
	traced(Options{}).Observe(ctx, &middleware.RequestEvent{Method: "POST", Route: "example.com/cart", Outcome: "failed", Kind: "too_many_waiters"})
	traced(Options{}).Observe(ctx, &middleware.RequestEvent{Method: "POST", Route: "/", Outcome: "failed", Kind: "lost", Runs: 1}) // the router knows better
	if server := ended()[0]; !slices.Contains(server.Attributes(), semconv.HTTPRoute("/cart")) {
		t.Errorf("%v", server.Attributes())
	}
}

// The page names the attributes of spans, so that traces can be searched for them.
func TestPageNamesTheAttributesOfSpans(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	ctx, ended := sampled(t)
	o := traced(Options{SessionID: true})
	for _, e := range manyEvents() {
		o.Observe(ctx, e)
	}
	for _, s := range ended() {
		for _, a := range s.Attributes() {
			ours := !strings.HasPrefix(string(a.Key), "db.") // the others are the convention's
			if ours && !strings.Contains(string(page), "`"+string(a.Key)+"`") {
				t.Errorf("the page does not name %s, which %q has", a.Key, s.Name())
			}
		}
	}
}

// Options choose the spans: IDs only if they are wanted, and no spans of Redis if the client makes them.
func TestOptionsOfSpans(t *testing.T) {
	t.Parallel()
	request := &middleware.RequestEvent{Session: "public-id", Method: "GET", Mode: middleware.ReadOnly}
	exchange := &middleware.ExchangeEvent{Command: "GET", Commands: 1}
	for name, c := range map[string]struct {
		options    Options
		spans, ids int
	}{
		"as they are":   {Options{}, 2, 0},
		"SessionID":     {Options{SessionID: true}, 2, 1},
		"LeaveRedis":    {Options{LeaveRedis: true}, 1, 0},
		"a no-op trace": {Options{TracerProvider: nooptrace.NewTracerProvider()}, 1, 0},
	} {
		ctx, ended := sampled(t)
		o := traced(c.options)
		o.Observe(ctx, exchange)
		o.Observe(ctx, request)
		spans, ids := ended(), 0
		for _, s := range spans {
			for _, a := range s.Attributes() {
				if a.Key == "session.id" && a.Value.AsString() == "public-id" {
					ids++
				}
			}
		}
		if len(spans) != c.spans || ids != c.ids {
			t.Errorf("%s: %d spans, %d with the session's ID, want %d and %d", name, len(spans), ids, c.spans, c.ids)
		}
	}
}

// Outside of a trace that is recorded, no span is made, since there is no parent for it. So the extension of a lease,
// or a request without a server's span, does not become a trace of its own.
func TestNoSpansOutsideOfATrace(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	o := traced(Options{TracerProvider: provider})
	elsewhere := trace.ContextWithRemoteSpanContext(t.Context(),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled}))
	for _, ctx := range []context.Context{context.Background(), spanned(sdktrace.NeverSample()), elsewhere} {
		for _, e := range usualEvents() {
			o.Observe(ctx, e)
		}
	}
	if n := len(spans.Ended()); n != 0 {
		t.Errorf("there are %d spans", n)
	}
}

// What happens after a commit in the middle of a handler may be told when the server's span has ended.
func TestAnExchangeIsToldLate(t *testing.T) {
	t.Parallel()
	ctx, end := sampled(t)
	end()
	now := time.Now()
	traced(Options{}).Observe(ctx, &middleware.ExchangeEvent{Script: "end", Command: "EVALSHA", Commands: 1, Began: now, Took: time.Millisecond})
	spans := end()
	if len(spans) != 2 || spans[1].Name() != "EVALSHA end" || spans[1].Parent().SpanID() != spans[0].SpanContext().SpanID() {
		t.Errorf("%q", lines(spans, now))
	}
}

// An Update in a handler is not what the server's span is about.
func TestAnUpdateDoesNotDescribeTheServersSpan(t *testing.T) {
	t.Parallel()
	ctx, ended := sampled(t)
	o := traced(Options{})
	o.Observe(ctx, &middleware.RequestEvent{Label: "Update", Session: "another", Outcome: "saved"})
	same(t, lines(ended(), time.Now()), `server "POST /cart"`)
}
