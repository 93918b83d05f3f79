package otellatchkey

import (
	"context"
	"iter"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// A request is one of those that are under way.
type request struct {
	session, state string // waits, holds or open
	since          time.Time
}

// now makes gauges of the requests that are under way, when metrics are collected.
type now struct {
	active  metric.Int64ObservableUpDownCounter
	longest metric.Int64ObservableGauge
	oldest  metric.Float64ObservableGauge

	mu       sync.Mutex
	attached []func() iter.Seq[request]
}

func newNow(m metric.Meter) *now {
	n := &now{
		active: made(m.Int64ObservableUpDownCounter("latchkey.request.active", metric.WithUnit("{request}"),
			metric.WithDescription("Requests that wait for their session, hold it, or have it open without a lock."))),
		longest: made(m.Int64ObservableGauge("latchkey.session.queue.longest", metric.WithUnit("{request}"),
			metric.WithDescription("Requests that wait for the same session, of the session with the most."))),
		oldest: made(m.Float64ObservableGauge("latchkey.session.hold.longest", metric.WithUnit("s"),
			metric.WithDescription("Age of the longest hold that is under way."))),
	}
	made(m.RegisterCallback(n.observe, n.active, n.longest, n.oldest))
	return n
}

func (n *now) attach(requests func() iter.Seq[request]) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attached = append(n.attached, requests)
}

func (n *now) observe(_ context.Context, o metric.Observer) error {
	n.mu.Lock()
	attached := n.attached[:len(n.attached):len(n.attached)]
	n.mu.Unlock()
	states := map[string]int64{"waits": 0, "holds": 0, "open": 0}
	queues := make(map[string]int64)
	var longest int64
	var oldest time.Duration
	for _, requests := range attached {
		for r := range requests() {
			if _, ok := states[r.state]; !ok {
				r.state = other
			}
			states[r.state]++
			switch r.state {
			case "waits":
				queues[r.session]++
				longest = max(longest, queues[r.session])
			case "holds":
				oldest = max(oldest, time.Since(r.since))
			}
		}
	}
	for state, count := range states {
		o.ObserveInt64(n.active, count, metric.WithAttributes(stateKey.String(state)))
	}
	o.ObserveInt64(n.longest, longest)
	o.ObserveFloat64(n.oldest, oldest.Seconds())
	return nil
}
