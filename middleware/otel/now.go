package otellatchkey

import (
	"reflect"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/metric"
)

// gauges are of the requests that are under way when metrics are collected.
type gauges struct {
	active             metric.Int64ObservableUpDownCounter
	queue              metric.Int64ObservableGauge
	hold               metric.Float64ObservableGauge
	holds, waits, open metric.MeasurementOption
}

func newGauges(m *meter) gauges {
	return gauges{
		active: made(m.Int64ObservableUpDownCounter("latchkey.request.active", metric.WithUnit("{request}"),
			metric.WithDescription("Requests of this process that hold their session, wait for it, or have it open without a lock."))),
		queue: made(m.Int64ObservableGauge("latchkey.session.queue.longest", metric.WithUnit("{request}"),
			metric.WithDescription("Requests of this process that wait for one session, of the session with the most."))),
		hold: made(m.Float64ObservableGauge("latchkey.session.hold.longest", metric.WithUnit("s"),
			metric.WithDescription("Age of the longest hold that is under way in this process."))),
		holds: metric.WithAttributes(stateKey.String("holds")),
		waits: metric.WithAttributes(stateKey.String("waits")),
		open:  metric.WithAttributes(stateKey.String("open")),
	}
}

func (g gauges) observe(o metric.Observer, c census) {
	o.ObserveInt64(g.active, int64(len(c.held)), g.holds)
	o.ObserveInt64(g.active, int64(c.waiting()), g.waits)
	o.ObserveInt64(g.active, int64(c.open), g.open)
	o.ObserveInt64(g.queue, int64(c.longest()))
	o.ObserveFloat64(g.hold, c.oldest(time.Now()).Seconds())
}

// attached are all Sessions whose metrics a provider gets, by any number of observers. Only the first of these sets the
// gauges: requests must not be counted twice, and of a gauge that two set, only one value would be left. Sessions that
// the program has dropped are forgotten.
type attached struct {
	to metric.MeterProvider

	mu  sync.Mutex // guards all
	all []weak.Pointer[middleware.Sessions]
}

// everyAttached has one for each provider. Their observers and providers keep them.
var everyAttached struct {
	mu  sync.Mutex // guards all
	all []weak.Pointer[attached]
}

func attachedTo(p metric.MeterProvider) (a *attached, first bool) {
	every := &everyAttached
	every.mu.Lock()
	defer every.mu.Unlock()
	every.all = slices.DeleteFunc(every.all, func(w weak.Pointer[attached]) bool { return w.Value() == nil })
	for _, w := range every.all {
		// The first global provider passes everything on to the one that is set later: then both have the same meter.
		if a := w.Value(); a != nil && (equal(a.to, p) || equal(meterOf(a.to), meterOf(p))) {
			return a, false
		}
	}
	a = &attached{to: p}
	every.all = append(every.all, weak.Make(a))
	return a, true
}

// equal reports whether two values are one. Those that cannot be compared are taken for different ones.
func equal(a, b any) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

func (a *attached) add(s *middleware.Sessions) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = slices.DeleteFunc(a.all, func(p weak.Pointer[middleware.Sessions]) bool {
		return p.Value() == nil || p.Value() == s // s is there already if it has two observers
	})
	a.all = append(a.all, weak.Make(s))
}

func (a *attached) count() (c census) {
	a.mu.Lock()
	all := slices.Clone(a.all)
	a.mu.Unlock()
	for _, p := range all {
		if s := p.Value(); s != nil {
			c.add(slices.Collect(s.Requests()))
		}
	}
	return c
}

// A census counts the requests that are under way. Sessions with the same store list the same holds and waits, so
// each of these counts once.
type census struct {
	held  map[string]time.Time // since when each session is held in this process
	queue map[string]int       // how many wait for each session
	open  int
}

func (c *census) add(requests []middleware.Request) {
	if c.held == nil {
		c.held, c.queue = make(map[string]time.Time), make(map[string]int)
	}
	queue := make(map[string]int)
	for _, r := range requests {
		switch {
		case r.State == "open":
			c.open++
		case r.State == "waits":
			queue[r.Session]++
			c.queue[r.Session] = max(c.queue[r.Session], queue[r.Session])
		case r.State == "holds" && r.Process == "":
			c.held[r.Session] = r.Since
		}
	}
}

func (c *census) waiting() (n int) {
	for _, waiting := range c.queue {
		n += waiting
	}
	return n
}

func (c *census) longest() (n int) {
	for _, waiting := range c.queue {
		n = max(n, waiting)
	}
	return n
}

func (c *census) oldest(now time.Time) (age time.Duration) {
	for _, since := range c.held {
		age = max(age, now.Sub(since))
	}
	return age
}
