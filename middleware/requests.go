package middleware

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/records"
)

// A Request is what one request of this process does with its session now, or a holder in another process, if requests
// of this process wait for its session.
type Request struct {
	// Session is the public ID.
	Session string
	// State is "holds" if the request holds the session, "waits" if it waits for it, and "open" if it has opened the
	// session and holds no lock. That may be a stream after its commit, a request that only reads, one that has lost its
	// lock, or one that has passed the session on and waits until its changes are stored. One request holds a session at
	// most.
	State string
	// Label is what waiters are told of the request, see Options.Label. For one in state "open" it is always its method
	// and route.
	Label string
	// Process is the host and process ID of a holder in another process, and otherwise empty.
	Process string
	// Since is when the state began. For the state "open" it is when the request arrived, or when it acquired the session
	// that it has passed on.
	Since time.Time
}

// Requests returns the requests of this process that hold a session, wait for one, or have one open, as they are now.
// Sessions come in the order in which their holders acquired them. If a session has no holder, the arrival of its first
// waiter counts, or else that of its oldest request. Within a session the order is: the holder, the waiters in line, the
// others. Requests does not ask Redis, and makes no request wait for longer than it takes to copy a list.
//
// Requests that hold a session or wait for one are those of all Sessions of the same store. A request whose session is
// new and not stored yet is not among them. If the holder of a session is in another process, it is the last holder that
// was found.
func (s *Sessions) Requests() iter.Seq[Request] {
	return slices.Values(s.requests())
}

// waitsForLock is request.holds of a request that waits for its session.
const waitsForLock = -1

// The states of a Request.
const (
	stateHolds = "holds"
	stateWaits = "waits"
	stateOpen  = "open"
)

// The order of the states.
var states = map[string]int{stateHolds: 0, stateWaits: 1, stateOpen: 2}

func (s *Sessions) requests() (all []Request) {
	standing := make(map[string]*records.Standing)
	now := s.store.Standings()
	for i := range now {
		standing[now[i].ID] = &now[i]
	}
	all = s.watch.requests()
	holders := holdersAmong(all)
	for id, i := range holders {
		at := standing[id]
		switch {
		case at == nil || at.Process != "":
		case at.Since.After(all[i].Since): // it has passed the session on to an Update, or to other Sessions
			all[i].State = stateOpen
			delete(holders, id)
		default:
			all[i].Label = cmp.Or(at.Label, all[i].Label)
		}
	}
	for _, at := range now {
		if _, held := holders[at.ID]; !held && !at.Since.IsZero() { // in another process, or an Update
			all = append(all, Request{Session: at.ID, State: stateHolds, Label: at.Label, Process: at.Process, Since: at.Since})
		}
		for _, w := range at.Waiting {
			all = append(all, Request{Session: at.ID, State: stateWaits, Label: w.Label, Since: w.Came})
		}
	}
	sortRequests(all)
	return all
}

// requests returns the requests that have their session open. Several of one session may have "holds", see holdersAmong.
func (w *watch) requests() (all []Request) {
	for _, e := range w.all() {
		r := Request{Session: e.id, State: stateOpen, Label: excerpt.Label(e.rq.route()), Since: e.rq.identity.arrived}
		switch since := e.rq.holds.Load(); since {
		case 0:
		case waitsForLock:
			continue // it is among those that wait
		default:
			r.State, r.Since = stateHolds, time.Unix(0, since)
		}
		all = append(all, r)
	}
	return all
}

// holdersAmong returns the index of each session's holder: the request that began last to hold it. Earlier ones have
// passed the session on, and wait until their changes are stored. They hold no lock, so their state becomes open.
func holdersAmong(all []Request) map[string]int {
	holders := make(map[string]int)
	for i, r := range all {
		if r.State != stateHolds {
			continue
		}
		if at, ok := holders[r.Session]; !ok || all[at].Since.Before(r.Since) {
			holders[r.Session] = i
		}
	}
	for i := range all {
		if r := &all[i]; r.State == stateHolds && holders[r.Session] != i {
			r.State = stateOpen
		}
	}
	return holders
}

// sortRequests puts requests into the order that Requests promises.
func sortRequests(all []Request) {
	first := make(map[string]time.Time) // of a session: when it was acquired, or else the first waiter came, or else the first stream
	slices.SortStableFunc(all, func(a, b Request) int {
		return cmp.Or(cmp.Compare(states[a.State], states[b.State]), a.Since.Compare(b.Since))
	})
	for _, r := range all {
		if _, ok := first[r.Session]; !ok {
			first[r.Session] = r.Since
		}
	}
	slices.SortStableFunc(all, func(a, b Request) int {
		return cmp.Or(first[a.Session].Compare(first[b.Session]), cmp.Compare(a.Session, b.Session))
	})
}
