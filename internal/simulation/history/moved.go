package history

import (
	"slices"
	"time"
)

// crossings judges that a request is refused if it crosses a login or a Renew, and that nobody else is shut out.
func (h *history) crossings() {
	for i := range h.all {
		r := &h.all[i]
		switch {
		case !r.Anew: // it may begin no session, whatever has ended
		case r.Outcome == Answered && (r.Effect == Write || r.Effect == Renew) && h.crosses(r, h.certainlyMoved):
			h.broken("who crosses a login is refused", with(r), "#%d came with an ID that had got a successor, and what it wrote elsewhere is lost to its client", r.Number)
		case r.Cause != Gone || h.crosses(r, h.mayBeMoved) || h.barred(r):
		case r.New || !r.Optimistic && !h.takenAway(r): // otherwise its response had begun, from what it had read before
			h.broken("nobody is shut out", with(r), "#%d may begin another session, and was refused since its own had ended", r.Number)
		}
	}
}

// A moving says whether a Renew or a login had moved an ID that a request has not found, between two times.
type moving func(id string, from, to time.Duration) bool

// crosses reports whether a request is to be refused since an ID that it came with was moved. A request that has
// opened a member's session is not. Nor is a login, which does not depend on what is in the session, nor a
// navigation. A Renew is refused only, and always, if a member's ID was moved: it has been done.
func (h *history) crosses(r *Request, moved moving) bool {
	member := r.Open > 0 && r.missed() != "" && moved(r.missed(), r.Began, r.Open)
	guest := r.Guest != "" && r.gone() && moved(r.Guest, r.Began, r.Open)
	switch {
	case r.LogsIn != "":
		return false
	case r.Renews:
		return member
	}
	return (member || guest) && !r.Navigates
}

// certainlyMoved is a moving that is true only if the successor was remembered until to. An ID that was not found
// had ended by then, and one that a Renew has moved was not ended by anything else, unless its lifetime was over.
func (h *history) certainlyMoved(id string, _, to time.Duration) bool {
	for _, e := range h.bySession[id] {
		if e.Effect == Renew && e.ending(id) && e.Outcome == Answered && to+slack < e.Seal+tombstone && !h.mayBeTooOld(e, to) && !h.lost(id, e.Asked, to) {
			return true
		}
	}
	return false
}

// mayBeMoved is a moving that is true in doubt.
func (h *history) mayBeMoved(id string, from, to time.Duration) bool {
	for _, e := range h.bySession[id] {
		over := e.End
		if e.Outcome == Unknown {
			over += 3*h.Lateness + slack
		}
		if e.Effect == Renew && e.ending(id) && e.Seal <= to && (from <= over+tombstone || h.mayBeLengthened(id, from, to)) {
			return true
		}
	}
	return false
}

// mayBeLengthened reports whether a read may have lengthened the life of a tombstone to the TTL: a fault can keep the read from
// undoing that. In the last minute of that life, the ID counts as moved. See load.go and moved.go of package records.
func (h *history) mayBeLengthened(id string, from, to time.Duration) bool {
	return !h.Strict && h.TTL > tombstone && slices.ContainsFunc(h.bySession[id], func(x *Request) bool {
		return to >= x.Began+h.TTL-tombstone && from <= x.Done+h.TTL+h.Lateness+slack
	})
}
