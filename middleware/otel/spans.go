package otellatchkey

import (
	"cmp"
	"context"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// trace makes spans of an event, as children of the server's span. They are made afterwards, with the times at which
// things have happened. Therefore a span of Redis is no child of the wait or hold.
//
// The server's span may have ended: another goroutine tells what happens after a commit in the middle of a handler, or in
// mode None, except that the session has ended. An ended span can have further children, but no further attributes and
// events.
func (o *observer) trace(ctx context.Context, server trace.Span, e middleware.Event) {
	switch e := e.(type) {
	case *middleware.RequestEvent:
		if e.Method != "" { // otherwise it is an Update, perhaps of another session
			server.SetAttributes(o.requestAttributes(e)...)
		}
		t := o.tracer(server)
		for i := range e.Holds {
			traceWait(ctx, t, e, i)
			traceHold(ctx, t, e, i)
		}
	case *middleware.ExchangeEvent:
		if !o.options.LeaveRedis {
			traceExchange(ctx, o.tracer(server), e)
		}
	case *middleware.SessionEvent:
		var attributes []attribute.KeyValue
		if e.How != "" {
			attributes = append(attributes, howKey.String(e.How))
		}
		server.AddEvent("session "+e.What, trace.WithTimestamp(e.Time), trace.WithAttributes(attributes...))
	}
}

func (o *observer) tracer(server trace.Span) trace.Tracer {
	provider := o.options.TracerProvider
	if provider == nil {
		provider = server.TracerProvider()
	}
	return provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
}

// requestAttributes are for the server's span, so that traces can be searched for requests that waited.
func (o *observer) requestAttributes(e *middleware.RequestEvent) []attribute.KeyValue {
	attributes := append(make([]attribute.KeyValue, 0, 14),
		modeKey.String(modeName(e.Mode)), outcomeKey.String(e.Outcome),
		waitKey.Float64(e.Waited.Seconds()), holdKey.Float64(e.Held.Seconds()),
		passedKey.Bool(e.Passed), runsKey.Int(e.Runs), roundTripsKey.Int(e.RoundTrips), recordSizeKey.Int(e.Bytes))
	if e.Runs == 0 && e.Route != "" { // it did not come to the router, so the server does not know the route
		attributes = append(attributes, semconv.HTTPRoute(pathOf(e.Route)))
	}
	if kind := kindOf(e); kind != "" {
		attributes = append(attributes, failureKey.String(kind))
	}
	if o.options.SessionID && e.Session != "" {
		attributes = append(attributes, semconv.SessionID(e.Session))
	}
	return attributes
}

// traceWait makes the span of a wait for the lock: from when the request asked for it until it had the lock or gave up.
func traceWait(ctx context.Context, t trace.Tracer, e *middleware.RequestEvent, i int) {
	h := e.Holds[i]
	end := h.Acquired
	if end.IsZero() { // it was in vain
		end = h.Released
	}
	if end.Equal(h.Asked) {
		return
	}
	attributes := append(make([]attribute.KeyValue, 0, 5), modeKey.String(modeName(e.Mode)), queueKey.Int(h.Queue))
	if h.Behind != "" {
		attributes = append(attributes, behindKey.String(h.Behind))
	}
	if h.BehindProcess != "" {
		attributes = append(attributes, behindProcessKey.String(h.BehindProcess))
	}
	record(ctx, t, "session wait", trace.SpanKindInternal, h.Asked, end, h.Kind, attributes)
}

// traceHold makes the span of the time for which the request had the lock. The outcome is that of the last commit, so
// only the last hold has it.
func traceHold(ctx context.Context, t trace.Tracer, e *middleware.RequestEvent, i int) {
	h := e.Holds[i]
	if h.Acquired.IsZero() {
		return
	}
	attributes := append(make([]attribute.KeyValue, 0, 3), modeKey.String(modeName(e.Mode)))
	if i == len(e.Holds)-1 {
		attributes = append(attributes, outcomeKey.String(e.Outcome))
	}
	record(ctx, t, "session hold", trace.SpanKindInternal, h.Acquired, h.Released, failureOf(e, i), attributes)
}

// failureOf is the error.type of a hold. Only the last may have one.
func failureOf(e *middleware.RequestEvent, i int) string {
	if i < len(e.Holds)-1 {
		return ""
	}
	return kindOf(e)
}

// traceExchange makes the span of an exchange with Redis, as the convention for Redis says. Keys and values are never
// in it.
func traceExchange(ctx context.Context, t trace.Tracer, e *middleware.ExchangeEvent) {
	key := exchangeKeyOf(e)
	attributes := append(key.attributes(), sentKey.Int(e.Sent), receivedKey.Int(e.Received))
	if key.pipeline {
		attributes = append(attributes, semconv.DBOperationBatchSize(e.Commands))
	}
	if endsHolds(e) {
		attributes = append(attributes, commitRequestsKey.Int(e.Holds))
	}
	name := key.operation()
	if target := cmp.Or(key.script, key.node); target != "" {
		name += " " + target
	}
	record(ctx, t, name, trace.SpanKindClient, e.Began, e.Began.Add(e.Took), key.errorType(), attributes)
}

// record makes a span of what is done already. failed is its error.type, or empty: by the convention, the status does not
// repeat it. The error's text is not in the span, since it may be longer than a trace should be, and stands in the log.
func record(ctx context.Context, t trace.Tracer, name string, kind trace.SpanKind, start, end time.Time, failed string, attributes []attribute.KeyValue) {
	_, span := t.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(start), trace.WithAttributes(attributes...))
	if failed != "" {
		span.SetAttributes(semconv.ErrorTypeKey.String(failed))
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(end))
}
