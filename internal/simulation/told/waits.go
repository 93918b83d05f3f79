package told

import (
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
)

// waits judges the times of a request's event.
func (j *judge) waits(r *request) {
	const rule = "the times that are told are those of the request"
	e := r.event
	same := func(what string, told time.Time, want time.Duration) {
		if got := j.since(told); got != want {
			j.broken(rule, r, "%s: %v, want %v", what, got, want)
		}
	}
	same("arrived", e.Arrived, r.first.Began)
	acquired := time.Duration(0)
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Open > 0 && !p.New && acquired == 0 {
			acquired = p.Open
		}
	}
	same("acquired", e.Acquired, acquired)
	if r.Disturbed {
		return
	}
	same("committed", e.Committed, r.committed())
	same("done", e.Done, r.last.Done)
	if low, high := r.waited(); e.Waited < low || e.Waited > high {
		j.broken(rule, r, "waited: %v, want %v to %v", e.Waited, low, high)
	}
	if low, high := r.held(e.Waited); e.Held < low || e.Held > high {
		j.broken(rule, r, "held: %v, want %v to %v", e.Held, low, high)
	}
}

// committed returns when the last commit that succeeded was stored.
func (r *request) committed() (at time.Duration) {
	for i := range r.Parts {
		p := &r.Parts[i]
		isLast := i == len(r.Parts)-1
		switch {
		case p.Durable > 0:
			at = p.Durable
		case isLast && r.Err == nil && !r.Panics && p.Open > 0:
			at = p.Answered
		}
	}
	return at
}

// waited returns the bounds of the time for which a request has waited for a lock. That excludes the claim of a
// session that a login has begun, although the handler gets the session only after it.
func (r *request) waited() (low, high time.Duration) {
	for i := range r.Parts {
		switch p := &r.Parts[i]; {
		case p.Exclusive && !p.Again:
			high += r.opened(p) - p.Asked
		case p.Optimistic && p.Seal > 0: // it may have saved its session without the lock
			high += r.last.Done - p.Seal
		}
	}
	if high > 0 && r.first.Exclusive && !r.ran("claim") && r.first.Cookie != "" {
		low = high
	}
	return low, high
}

// opened is when a request stopped waiting.
func (r *request) opened(p *history.Request) time.Duration {
	if p.Open > 0 {
		return p.Open
	}
	return p.Answered
}

// held returns the bounds of the time for which a request that waited this long had the lock.
func (r *request) held(waited time.Duration) (low, high time.Duration) {
	most := r.last.Done - r.first.Began - waited
	p := r.first
	switch {
	case len(r.Parts) > 1 || p.Optimistic || r.ran("claim"):
		return 0, most
	case !p.Exclusive || p.New || p.Open == 0:
		return 0, 0
	case r.Panics:
		return most, most
	case r.Err == nil:
		return r.committed() - p.Open, r.committed() - p.Open
	}
	return 0, most
}

// ran reports whether the request has run a script.
func (r *request) ran(name string) bool {
	for _, x := range r.exchanges {
		if x.Script == name {
			return true
		}
	}
	return false
}
