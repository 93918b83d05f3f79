package told

import (
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/middleware"
)

// line judges what a request's event says about the requests before it.
func (j *judge) line(r *request) {
	const rule = "who was before a request is told"
	e := r.event
	asked, ok := r.askedLock()
	if !ok {
		return
	}
	least, most, holders := 0, 0, 0
	for _, other := range j.requests {
		if other == r {
			continue
		}
		for i := range other.Parts {
			x := &other.Parts[i]
			if x.Cookie != r.first.Cookie && x.Member != r.first.Cookie && x.Guest != r.first.Cookie && x.SetID != r.first.Cookie {
				continue
			}
			if other.Process != r.Process || other.Life != r.Life {
				if x.Open > 0 || x.Asked > 0 {
					holders++
				}
				continue
			}
			certain, possible := j.stands(other, x, r.first.Cookie, asked)
			if certain {
				least++
			}
			if possible {
				most++
			}
			if x.Asked <= asked {
				holders++
			}
			if !other.lost() && other.holdsAt(x, r.first.Cookie, asked) && r.waitedInLine() && e.Behind == "" {
				j.broken(rule, r, "it does not know whom it has waited for: #%d had the session since %v", x.Number, x.Open)
			}
		}
	}
	if e.Queue < least || e.Queue > most {
		j.broken(rule, r, "%d stood before it, want %d to %d", e.Queue, least, most)
	}
	if e.Queue > 0 && e.Behind == "" {
		j.broken(rule, r, "%d stood before it, and it does not know whom it has waited for", e.Queue)
	}
	if e.Behind != "" && holders == 0 {
		j.broken(rule, r, "it waited for %q, but nobody can have had the session", e.Behind)
	}
	if e.BehindProcess != "" {
		j.broken(rule, r, "it waited for the process %q, and there is only one in the simulation", e.BehindProcess)
	}
}

// askedLock returns when a request with a single cookie asked for its lock. It returns false if that is not
// known.
func (r *request) askedLock() (time.Duration, bool) {
	p := r.first
	if !p.Exclusive || p.Cookie == "" || p.Member != "" && p.Guest != "" {
		return 0, false
	}
	return p.Asked, true
}

// waitedInLine reports whether a request has waited for its session while another had it.
func (r *request) waitedInLine() bool { return r.event.Waited > 0 && r.event.Outcome != "" }

// stands reports whether x, a part of a request, stood in the line of a session at a time, without having the
// session.
func (j *judge) stands(r *request, x *history.Request, id string, at time.Duration) (certain, possible bool) {
	from, to := x.Asked, r.opened(x)
	if to == 0 {
		to = x.Done
	}
	if x.Optimistic || r.Parts[len(r.Parts)-1].Again {
		from, to = x.Asked, r.last.Done
	}
	possible = from <= at && to >= at
	certain = possible && from < at && to > at && x.Exclusive && !x.Again && x.Cookie == id && !(x.Member != "" && x.Guest != "") &&
		x.Cause != history.TooMany && x.Leaves == 0 && !x.New && x.Open > 0 && !r.ran("claim") &&
		!j.givesBack(r, at)
	return certain, possible
}

// GivesBack reports whether, in an exchange, a request may give back the lock that was passed on to it, since the
// lease was too short by then. Meanwhile the request owns the lock. Then it stands in line again.
func GivesBack(x *middleware.ExchangeEvent) bool {
	return (x.Script == "commit" || x.Script == "release") && x.Holds == 0
}

// givesBack reports whether a request was giving back a lock at a time.
func (j *judge) givesBack(r *request, at time.Duration) bool {
	return slices.ContainsFunc(r.exchanges, func(x *middleware.ExchangeEvent) bool {
		return GivesBack(x) && j.since(x.Began) <= at && at <= j.since(x.Began.Add(x.Took))
	})
}

// holdsAt reports whether x certainly had the lock of a session at a time.
func (r *request) holdsAt(x *history.Request, id string, at time.Duration) bool {
	return x.Exclusive && x.Cookie == id && !x.New && x.Open > 0 && x.Open < at && x.Seal > at && r.Err == nil && x.Outcome == history.Answered
}
