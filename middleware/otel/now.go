package otellatchkey

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/middleware"
	"go.opentelemetry.io/otel/metric"
)

// now makes gauges of the requests that are under way. They are only looked at when metrics are collected.
type now struct {
	active       metric.Int64ObservableUpDownCounter
	queue        metric.Int64ObservableGauge
	hold         metric.Float64ObservableGauge
	holds, waits metric.MeasurementOption
	open         metric.MeasurementOption

	mu       sync.Mutex
	attached []*middleware.Sessions
}

func newNow(m metric.Meter) *now {
	n := &now{
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
	made(m.RegisterCallback(n.observe, n.active, n.queue, n.hold))
	return n
}

// Attach is called by middleware.New.
func (n *now) Attach(s *middleware.Sessions) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attached = append(n.attached, s)
}

func (n *now) observe(_ context.Context, o metric.Observer) error {
	n.mu.Lock()
	attached := slices.Clone(n.attached)
	n.mu.Unlock()
	var c census
	for _, s := range attached {
		c.add(slices.Collect(s.Requests()))
	}
	o.ObserveInt64(n.active, int64(len(c.held)), n.holds)
	o.ObserveInt64(n.active, int64(c.waiting()), n.waits)
	o.ObserveInt64(n.active, int64(c.open), n.open)
	o.ObserveInt64(n.queue, int64(c.longest()))
	o.ObserveFloat64(n.hold, c.oldest(time.Now()).Seconds())
	return nil
}

// A census counts requests that are under way. Sessions with the same store list the same holds and waits, which count
// once.
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
