package otellatchkey

import (
	"context"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/middleware/sessiontest"
	"github.com/a2139e8d/latchkey/session"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// A served site has real sessions, whose observer is New's.
type served struct {
	*sessiontest.Site
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	enter  chan struct{} // GET /hold has its session
	leave  chan struct{} // and holds it until this is closed
	free   func()        // which closes it
	freed  chan struct{} // GET /again has committed
	again  chan struct{} // and opens its session again after this
}

func serveSite(t *testing.T) *served {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	o := New(Options{MeterProvider: provider})
	_ = New(Options{MeterProvider: provider}) // of other Sessions: it must not count the same requests again
	s := &served{reader: reader, spans: tracetest.NewSpanRecorder(), enter: make(chan struct{}), leave: make(chan struct{}),
		freed: make(chan struct{}), again: make(chan struct{})}
	s.free = sync.OnceFunc(func() { close(s.leave) })
	s.Site = sessiontest.New(t, middleware.Options{Observers: []middleware.Observer{o}, LockWait: time.Minute})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /add", func(_ http.ResponseWriter, r *http.Request) {
		n, _ := session.Get[int](session.FromContext(r.Context()), "n")
		session.FromContext(r.Context()).Set("n", n+1)
	})
	mux.HandleFunc("GET /hold/{it}", func(_ http.ResponseWriter, r *http.Request) {
		session.FromContext(r.Context()).Set("held", true)
		s.enter <- struct{}{}
		<-s.leave
	})
	mux.HandleFunc("GET /again", func(_ http.ResponseWriter, r *http.Request) {
		saved := session.FromContext(r.Context())
		saved.Set("again", 1)
		if err := saved.Commit(r.Context()); err != nil {
			t.Error(err)
		}
		s.freed <- struct{}{}
		<-s.again
		if err := saved.Reopen(r.Context()); err != nil {
			t.Error(err)
		}
		saved.Set("again", 2)
	})
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	t.Cleanup(s.free) // also if the test fails
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans)).Tracer("server")
	inner := s.Sessions.Handler(mux)
	s.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := tracer.Start(r.Context(), "request", trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("url.path", r.URL.Path)))
		defer span.End()
		inner.ServeHTTP(w, r.WithContext(ctx))
	}))
	return s
}

func get(t *testing.T, c *http.Client, url string) {
	res, err := c.Get(url)
	if err != nil {
		t.Error(err)
		return
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", url, res.Status)
	}
}

// values sums the series of each metric that the test's requests have made since before.
func (s *served) values(t *testing.T) (sums map[string]float64, counts map[string]uint64) {
	t.Helper()
	sums, counts = make(map[string]float64), make(map[string]uint64)
	for _, x := range all(t, s.reader) {
		sums[x.metric] += x.sum
		counts[x.metric] += x.count
	}
	return sums, counts
}

// The numbers agree with what the clients have seen: each request counts once, and has one wait and one hold.
func TestNumbersOfRealRequests(t *testing.T) {
	t.Parallel()
	const visitors, requests = 2, 8
	s := serveSite(t)
	var clients []*http.Client
	for range visitors {
		clients = append(clients, s.Client(func(s *session.Session) { s.Set("n", 0) }))
	}
	sums, counts := s.values(t)
	beforeRequests, beforeHolds, beforeWaits, beforeBegan := sums["latchkey.requests"], counts["latchkey.session.hold.duration"],
		counts["latchkey.session.wait.duration"], sums["latchkey.session.began"]
	var all sync.WaitGroup
	for _, c := range clients {
		for range requests {
			all.Go(func() { get(t, c, s.URL+"/add") })
		}
	}
	all.Wait()
	sums, counts = s.values(t)
	if n := sums["latchkey.requests"] - beforeRequests; n != visitors*requests {
		t.Errorf("%v requests", n)
	}
	if n := counts["latchkey.session.hold.duration"] - beforeHolds; n != visitors*requests {
		t.Errorf("%v holds", n)
	}
	if n := counts["latchkey.session.wait.duration"] - beforeWaits; n != visitors*requests {
		t.Errorf("%v waits", n)
	}
	if n := sums["latchkey.session.began"] - beforeBegan; n != 0 {
		t.Errorf("%v sessions have begun", n)
	}
	if counts["db.client.operation.duration"] == 0 || sums["latchkey.commit.requests"] < visitors*requests {
		t.Errorf("%v exchanges, commits of %v requests", counts["db.client.operation.duration"], sums["latchkey.commit.requests"])
	}
}

// While a request holds the session, the gauges count it and its waiters.
func TestGaugesOfRealRequests(t *testing.T) {
	t.Parallel()
	s := serveSite(t)
	ann := s.Client(func(s *session.Session) { s.Login("ann") })
	var all sync.WaitGroup
	all.Go(func() { get(t, ann, s.URL+"/hold/it") })
	<-s.enter
	for range 3 {
		all.Go(func() { get(t, ann, s.URL+"/add") })
	}
	eventually(t, s, func(measured string) bool {
		for _, want := range []string{
			"latchkey.request.active latchkey.state=holds sum=1\n", "latchkey.request.active latchkey.state=waits sum=3\n",
			"latchkey.session.queue.longest sum=3\n", "latchkey.session.hold.longest sum=",
		} {
			if !strings.Contains(measured, want) {
				return false
			}
		}
		return true
	})
	s.free()
	all.Wait()
	eventually(t, s, func(measured string) bool { return !strings.Contains(measured, "latchkey.request.active") })
}

// The spans of a request that waits for another one fall into its own trace, inside the time of the server's span, and
// say behind whom it waited.
func TestTraceOfARealRequest(t *testing.T) {
	t.Parallel()
	s := serveSite(t)
	ann := s.Client(func(s *session.Session) { s.Login("ann") })
	var all sync.WaitGroup
	all.Go(func() { get(t, ann, s.URL+"/hold/it") })
	<-s.enter
	all.Go(func() { get(t, ann, s.URL+"/add") })
	eventually(t, s, func(measured string) bool { return strings.Contains(measured, "latchkey.state=waits") })
	s.free()
	all.Wait()

	children := make(map[trace.SpanID][]sdktrace.ReadOnlySpan)
	var servers []sdktrace.ReadOnlySpan
	for _, span := range s.spans.Ended() {
		if span.SpanKind() == trace.SpanKindServer {
			servers = append(servers, span)
		}
		children[span.Parent().SpanID()] = append(children[span.Parent().SpanID()], span)
	}
	found := false
	for _, server := range servers {
		for _, span := range children[server.SpanContext().SpanID()] {
			if span.SpanContext().TraceID() != server.SpanContext().TraceID() {
				t.Errorf("%q is in another trace", span.Name())
			}
			if span.StartTime().Before(server.StartTime()) || span.EndTime().After(server.EndTime()) || span.EndTime().Before(span.StartTime()) {
				t.Errorf("%q from %v to %v is outside of its request, from %v to %v", span.Name(), span.StartTime(), span.EndTime(), server.StartTime(), server.EndTime())
			}
			found = found || span.Name() == "session wait" && strings.Contains(strings.Join(lines([]sdktrace.ReadOnlySpan{span}, server.StartTime()), ""), "latchkey.behind.label=GET /hold/{it}")
		}
	}
	if len(servers) != 2 || !found {
		t.Errorf("%d requests, and none has waited behind GET /hold/{it}:\n%s", len(servers), strings.Join(lines(s.spans.Ended(), time.Now()), "\n"))
	}
}

// A request that opens its session again has two waits and two holds, one after another. Together they are as long as
// the server's span says, and the second wait names its holder.
func TestTraceOfARealReopen(t *testing.T) {
	t.Parallel()
	s := serveSite(t)
	ann := s.Client(func(s *session.Session) { s.Login("ann") })
	var all sync.WaitGroup
	all.Go(func() { get(t, ann, s.URL+"/again") })
	<-s.freed
	all.Go(func() { get(t, ann, s.URL+"/hold/it") })
	<-s.enter
	close(s.again)
	eventually(t, s, func(measured string) bool { return strings.Contains(measured, "latchkey.state=waits") })
	s.free()
	all.Wait()

	ended := s.spans.Ended()
	server := ended[slices.IndexFunc(ended, func(span sdktrace.ReadOnlySpan) bool {
		return span.SpanKind() == trace.SpanKindServer && slices.Contains(span.Attributes(), attribute.String("url.path", "/again"))
	})]
	var names []string
	var behind []string
	sums, last := make(map[string]float64), server.StartTime()
	for _, span := range ended {
		if span.Parent().SpanID() != server.SpanContext().SpanID() || span.SpanKind() != trace.SpanKindInternal {
			continue
		}
		if span.StartTime().Before(last) {
			t.Errorf("%q starts at %v, before %v", span.Name(), span.StartTime(), last)
		}
		last = span.EndTime()
		names = append(names, span.Name())
		sums[span.Name()] += span.EndTime().Sub(span.StartTime()).Seconds()
		for _, a := range span.Attributes() {
			if a.Key == behindKey {
				behind = append(behind, a.Value.AsString())
			}
		}
	}
	if !slices.Equal(names, []string{"session wait", "session hold", "session wait", "session hold"}) || !slices.Equal(behind, []string{"GET /hold/{it}"}) {
		t.Errorf("the spans are %q, behind %q", names, behind)
	}
	for _, a := range server.Attributes() {
		name, ok := map[attribute.Key]string{waitKey: "session wait", holdKey: "session hold"}[a.Key]
		if ok && math.Abs(a.Value.AsFloat64()-sums[name]) > 1e-6 {
			t.Errorf("%s is %v, and the spans %q are %v s long", a.Key, a.Value.AsFloat64(), name, sums[name])
		}
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, s *served, ok func(measured string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		lines := strings.Join(measured(t, s.reader), "\n") + "\n"
		if ok(lines) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("what was waited for does not happen:\n%s", lines)
		case <-time.After(time.Millisecond):
		}
	}
}

// If the session of a stream ends, the server's span says so. The request itself tells it, before the span ends.
func TestTraceOfAStreamWhoseSessionEnds(t *testing.T) {
	t.Parallel()
	s := serveSite(t)
	const many = 20 // a goroutine that tells it beside the request is mostly late
	var bodies []io.ReadCloser
	for range many {
		res, err := s.Client(func(s *session.Session) { s.Login("ann") }).Get(s.URL + "/stream")
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, res.Body)
	}
	if _, err := s.Sessions.EndAll(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		_, _ = io.Copy(io.Discard, body)
		_ = body.Close()
	}
	streams, ended := 0, 0
	eventually(t, s, func(string) bool {
		streams, ended = 0, 0
		for _, line := range lines(s.spans.Ended(), time.Now()) {
			if strings.Contains(line, "url.path=/stream") {
				streams++
				ended += strings.Count(line, `event="session ended_open"`)
			}
		}
		return streams == many
	})
	if ended != streams {
		t.Errorf("of %d streams whose session has ended, %d say so", streams, ended)
	}
}

// Each provider gets the gauges of its observers' sites once. That holds if an observer was made before the global
// provider was set, even with that provider by name, and if the global provider is set twice. A separate process sets
// it.
func TestGaugesOfTheGlobalProvider(t *testing.T) {
	const inside = "LATCHKEY_TEST_GLOBAL_PROVIDER"
	if how := os.Getenv(inside); how != "" {
		holdUnderGlobalProvider(t, how)
		return
	}
	t.Parallel()
	for _, how := range []string{"once", "twice", "by name"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.timeout=1m", "-test.v")
		cmd.Env = append(os.Environ(), inside+"="+how)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%s: %v:\n%s", how, err, out)
		}
	}
}

// holdUnderGlobalProvider makes one observer before the global provider is set, and one after that. A request holds
// its session on the first observer's site or, if the provider was set twice, on the second's.
func holdUnderGlobalProvider(t *testing.T, how string) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	o := Options{}
	if how == "by name" {
		o.MeterProvider = provider
	}
	before := New(o)
	if how == "twice" {
		otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))
	}
	otel.SetMeterProvider(provider)
	busyWith, idleWith := before, New(Options{})
	if how == "twice" {
		busyWith, idleWith = idleWith, busyWith
	}
	enter, leave := make(chan struct{}), make(chan struct{})
	busy := sessiontest.New(t, middleware.Options{Observers: []middleware.Observer{busyWith}})
	busy.Serve(busy.Sessions.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		enter <- struct{}{}
		<-leave
	})))
	idle := sessiontest.New(t, middleware.Options{Observers: []middleware.Observer{idleWith}})
	var served sync.WaitGroup
	served.Go(func() { get(t, busy.Client(func(s *session.Session) { s.Set("n", 1) }), busy.URL) })
	<-enter
	got := strings.Join(measured(t, reader), "\n") // without series that are 0
	close(leave)
	served.Wait()
	if !strings.Contains(got, "latchkey.request.active latchkey.state=holds sum=1") || !strings.Contains(got, "latchkey.session.hold.longest") {
		t.Errorf("the gauges do not show the request that holds its session:\n%s", got)
	}
	runtime.KeepAlive(idle)
}
