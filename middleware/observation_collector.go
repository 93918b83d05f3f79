package middleware

import (
	"context"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// An observation is a records.Collector: this is what package records tells it.

// Exchanged implements records.Collector.
func (o *observation) Exchanged(x records.Exchange) {
	n := o.lock()
	if n == nil {
		e := ExchangeEvent(x)
		o.passOn(&e)
		return
	}
	x.Began = n.at(x.Began)
	n.event.RoundTrips++
	n.stored = time.Time{}
	if x.Holds > 0 {
		n.stored = x.Began.Add(x.Took)
	}
	if o.keeps(n) {
		n.kept = append(n.kept, n.exchange(x))
	} else {
		e := ExchangeEvent(x)
		o.passOn(&e)
	}
	o.mu.Unlock()
}

// keeps reports whether the next event is kept. If too many are, the backlogs get them all, except the one that the request
// itself tells in any case. It is called with mu held.
func (o *observation) keeps(n *notes) bool {
	if n.keeping && len(n.kept) >= maxKept {
		n.kept = slices.DeleteFunc(n.kept, func(e Event) bool {
			if s, ok := e.(*SessionEvent); ok && s.What == endedOpen {
				return false
			}
			o.passOn(e.Clone())
			return true
		})
		n.keeping = false
	}
	return n.keeping
}

// endedOpen is what has happened if a session has ended while it was open. The request ends then, and tells it itself before
// its own event: another goroutine would come too late for the span of the request.
const endedOpen = "ended_open"

// Noticed implements records.Collector. An urgent notice is told at once: it is of a lost lock, so the request holds none.
func (o *observation) Noticed(notice *records.Notice, urgent bool) {
	e := (*SessionEvent)(notice)
	n := o.lock()
	if n == nil {
		o.passOn(e)
		return
	}
	if e.What == endedOpen || !urgent && o.keeps(n) {
		n.kept = append(n.kept, e)
	} else {
		o.passOn(e)
	}
	o.mu.Unlock()
}

// passOn gives the backlogs an event that is not kept. Until the request is done, it is called with mu held, so that the
// events stay in order.
func (o *observation) passOn(e Event) {
	for _, b := range o.sessions.backlogs {
		b.add(lasting{o}, e)
	}
}

// Sized implements records.Collector.
func (o *observation) Sized(bytes int) {
	if n := o.lock(); n != nil {
		n.event.Bytes = bytes
		o.mu.Unlock()
	}
}

// lasting is the observation as a context that does not end with the request: for commits, and for observers.
type lasting struct{ *observation }

func (lasting) Deadline() (end time.Time, ok bool) { return end, false }
func (lasting) Done() <-chan struct{}              { return nil }
func (lasting) Err() error                         { return nil }

// WithoutCancel implements records.Collector.
func (o *observation) WithoutCancel() context.Context { return lasting{o} }
