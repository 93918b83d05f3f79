package told

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/simulation/history"
	"github.com/a2139e8d/latchkey/middleware"
)

// locks judges the events of locks.
func (j *judge) locks() {
	handedOver := make(map[place][]time.Duration)
	for _, e := range j.Events {
		x, ok := e.What.(*middleware.SessionEvent)
		switch {
		case !ok:
		case x.What == "extended" && !j.held(e, x):
			j.broken("a lock that is extended has a holder", nil, "%s at %v", x.Session, j.since(x.Time))
		case x.What == "swept" && !j.asked(e, x):
			j.broken("a lock that is swept was asked for", nil, "%s at %v", x.Session, j.since(x.Time))
		case x.What == "ended_open":
			j.endedOpen(e, x)
		case x.What == "handed_over":
			at := placeOf(e.Mark, x.Session)
			handedOver[at] = append(handedOver[at], j.since(x.Time))
		}
	}
	for _, r := range j.requests {
		if r.event != nil && r.event.Kind == "lost" && r.first.Exclusive && !r.lost() {
			j.broken("a lock that is lost is told", r, "it failed since its lock was lost: %v", r.event.Err)
		}
	}
	for _, line := range j.acquired() {
		at := placeOf(line[0].Mark, line[0].first.Cookie)
		for i, r := range line {
			// Passed may belong to an earlier hold.
			if i > 0 && r.event.Passed && len(r.event.Holds) < 2 && within(handedOver[at], line[i-1].event.Acquired, r.event.Acquired, j.Began) && !j.others(at, line[i-1], r) {
				j.broken("who passes a session on is told", r, "the session was handed over before, by #%d or after it", line[i-1].first.Number)
			}
		}
	}
}

// endedOpen judges the event that a request's context has ended with its session: the request must have had that
// session open, and the session must have ended.
func (j *judge) endedOpen(e Event, x *middleware.SessionEvent) {
	const rule = "a session that ends while it is open has ended"
	r := j.byNumber[e.Request]
	switch {
	case r == nil || r.event == nil || !r.found() && !r.event.Began || r.first.Open > j.since(x.Time):
		j.broken(rule, r, "%s was not open at %v", x.Session, j.since(x.Time))
	case j.Strict && !j.over(x.Session) && r.last.Done-r.first.Open < j.TTL && !j.mayBeTooOld(x.Time):
		j.broken(rule, r, "nobody has ended %s, and it had not expired at %v", x.Session, j.since(x.Time))
	}
}

// mayBeTooOld reports whether a session may have reached the end of its lifetime by then.
func (j *judge) mayBeTooOld(at time.Time) bool { return j.Lifetime > 0 && j.since(at) >= j.Lifetime }

// over reports whether the end of a session is told, perhaps under a later ID. For its user, a session has also ended if
// another user has logged in with it.
func (j *judge) over(id string) bool {
	for range len(j.moved) {
		next := j.moved[id]
		if j.ends[id] > 0 || next == "" {
			break
		}
		user, _, ofUser := strings.Cut(id, ".")
		if ofUser && !strings.HasPrefix(next, user+".") {
			return true
		}
		id = next
	}
	return j.ends[id] > 0
}

// acquired returns, for each session in each process, the requests that have acquired its lock exactly once, in
// order.
func (j *judge) acquired() (lines [][]*request) {
	index := make(map[place]int)
	for _, r := range j.requests {
		if r.event == nil || r.event.Acquired.IsZero() || !r.first.Exclusive || len(r.Parts) > 1 {
			continue
		}
		at := placeOf(r.Mark, r.first.Cookie)
		i, ok := index[at]
		if !ok {
			i = len(lines)
			index[at], lines = i, append(lines, nil)
		}
		lines[i] = append(lines[i], r)
	}
	for _, line := range lines {
		slices.SortFunc(line, func(a, b *request) int {
			return cmp.Or(a.event.Acquired.Compare(b.event.Acquired), passed(a)-passed(b), cmp.Compare(a.last.Seal, b.last.Seal))
		})
	}
	return lines
}

// passed is 1 if the session was passed on to the request.
func passed(r *request) int {
	if r.event.Passed {
		return 1
	}
	return 0
}

// others reports whether requests that are not in acquired may have had a session between two requests.
func (j *judge) others(at place, before, r *request) bool {
	return slices.ContainsFunc(j.requests, func(x *request) bool {
		return (!x.first.Exclusive || len(x.Parts) > 1 || x.event == nil || x.event.Acquired.IsZero()) && placeOf(x.Mark, at.id) == at &&
			(x.first.Cookie == at.id || x.first.Guest == at.id || x.first.Member == at.id) &&
			x.first.Began <= j.since(r.event.Acquired) && x.last.Done >= j.since(before.event.Acquired)
	})
}

// A place is a session in a process.
type place struct {
	Mark
	id string
}

func placeOf(m Mark, id string) place { return place{Mark{Process: m.Process, Life: m.Life}, id} }

// within reports whether one of the times lies between two others.
func within(times []time.Duration, from, to, began time.Time) bool {
	return slices.ContainsFunc(times, func(t time.Duration) bool { return t > from.Sub(began) && t < to.Sub(began) })
}

// lost reports whether the request was told that its lock is lost.
func (r *request) lost() bool {
	return slices.ContainsFunc(r.sessions, func(x *middleware.SessionEvent) bool { return x.What == "lost" })
}

// held reports whether a request of the process may have had the session. With faults, the reply to an extension may come
// after the request has been given up.
func (j *judge) held(e Event, x *middleware.SessionEvent) bool {
	return j.any(e, x, func(r *request) bool { return r.last.Done >= j.since(x.Time) || !j.Strict })
}

// asked reports whether a request of the process has asked for the session.
func (j *judge) asked(e Event, x *middleware.SessionEvent) bool {
	return j.any(e, x, func(r *request) bool { return r.first.Exclusive || r.first.Optimistic })
}

// any reports whether a request of an event's process had asked for the event's session before, and is wanted.
func (j *judge) any(e Event, x *middleware.SessionEvent, wanted func(r *request) bool) bool {
	return slices.ContainsFunc(j.requests, func(r *request) bool {
		return r.Process == e.Process && r.Life == e.Life && wanted(r) && slices.ContainsFunc(r.Parts, func(p history.Request) bool {
			return p.Asked <= j.since(x.Time) && (p.Cookie == x.Session || p.Guest == x.Session || p.Member == x.Session || p.SetID == x.Session)
		})
	})
}
