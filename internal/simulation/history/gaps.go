package history

import (
	"cmp"
	"slices"
	"time"
)

// gaps judges that no request waits for long while no other request has the session. A wait may last as
// long as the holds of others, plus the time of the changes between them. So no lock is left behind by a
// request that is gone, and no request misses its turn.
func (h *history) gaps() {
	for _, r := range h.all {
		from, until := r.waited()
		if !r.Exclusive && r.Effect == Nothing || r.Cookie == "" || r.Blocked > 0 || r.gone() || r.late() || until-from <= h.Gap {
			continue
		}
		limit := h.Gap
		if !h.Strict && (r.Optimistic || r.Again) { // it did not wait at first; its commit waited for the lock
			limit += h.Timeout
		}
		free := from // since when no request has had the session, as far as is known
		for _, x := range h.holders(r.Cookie) {
			over := x.Done + h.unnoticed(x)
			if x.Number == r.Number || over < free {
				continue
			}
			if min(x.has(), until)-free > limit {
				break
			}
			free = max(free, over)
		}
		if gap := until - free; gap > limit {
			h.broken("nobody waits for what nobody has", with(&r), "#%d waited until %s; nobody has had the session since %s", r.Number, ms(until), ms(free))
		}
	}
}

// has returns when a request has got its session exclusively. For an optimistic one that is a moment at
// its end.
func (r *Request) has() time.Duration {
	if r.Optimistic {
		return r.End
	}
	return r.Open
}

// unnoticed is how long it may take others to notice that a hold is over. If the hold was longer than
// MaxHold, its lock expired, and no message told the others.
func (h *history) unnoticed(r *Request) time.Duration {
	if r.Done-r.has() >= h.MaxHold-8*h.Latency {
		return 500 * time.Millisecond
	}
	return 0
}

// holders returns the requests that have, or may have, got a session exclusively, or learnt that it has
// ended, in that order.
func (h *history) holders(id string) []*Request {
	if held, ok := h.held[id]; ok {
		return held
	}
	var held []*Request
	for _, r := range h.bySession[id] {
		if r.Cookie == id && (r.Exclusive && r.Open > 0 || r.tookTurn || r.Optimistic && r.Effect != Nothing && !r.New) {
			held = append(held, r)
		}
	}
	slices.SortFunc(held, func(a, b *Request) int { return cmp.Compare(a.has(), b.has()) })
	h.held[id] = held
	return held
}

// queue judges that a process serves its requests first come, first served.
func (h *history) queue() {
	for _, id := range h.ids() {
		last := make([]*Request, h.Processes) // the request that each process served last, by when it came
		for _, r := range h.holders(id) {
			if r.New || r.Optimistic || r.Again || r.late() {
				continue // needed no lock, or nobody knows when it asked for the lock
			}
			before := last[r.Process]
			if before != nil && r.Asked < before.Asked && r.Open > before.Open {
				h.broken("first come, first served", with(before, r), "#%d asked at %s and got the session at %s; #%d, at %s and %s",
					r.Number, ms(r.Asked), ms(r.Open), before.Number, ms(before.Asked), ms(before.Open))
			}
			if before == nil || r.Asked > before.Asked {
				last[r.Process] = r
			}
		}
	}
}
