package history

import (
	"cmp"
	"slices"
	"time"
)

// exclusion judges that handlers hold a session one at a time. A hold counts no longer than MaxHold.
func (h *history) exclusion() {
	for _, id := range h.ids() {
		rs := h.bySession[id]
		var holds []*Request
		for _, r := range rs {
			if r.Cookie == id && r.Exclusive && r.Open > 0 && !r.New {
				holds = append(holds, r)
			}
		}
		slices.SortFunc(holds, func(a, b *Request) int {
			return cmp.Or(cmp.Compare(a.Open, b.Open), cmp.Compare(a.holds(h.MaxHold), b.holds(h.MaxHold)))
		})
		h.intruders(rs, holds)
		for i := 1; i < len(holds); i++ {
			before, r := holds[i-1], holds[i]
			if end := before.holds(h.MaxHold - 8*h.Latency); r.Open < end {
				h.broken("one holder at a time", with(before, r), "#%d held the session until %s, #%d had it at %s", before.Number, ms(end), r.Number, ms(r.Open))
			}
		}
	}
}

// intruders judges that nothing is saved without the lock while a handler holds the session.
func (h *history) intruders(rs, holds []*Request) {
	for _, r := range rs {
		if !r.Optimistic || r.New || r.Effect == Nothing || r.Outcome != Answered {
			continue
		}
		for _, x := range holds {
			if end := x.holds(h.MaxHold - 8*h.Latency); x.Open < r.Seal && r.End < end {
				h.broken("one holder at a time", with(x, r), "#%d held the session from %s to %s, but #%d was saved between %s and %s",
					x.Number, ms(x.Open), ms(end), r.Number, ms(r.Seal), ms(r.End))
			}
		}
	}
}

// holds returns until when a request has held its session.
func (r *Request) holds(most time.Duration) time.Duration {
	end := r.Seal
	if end == 0 {
		end = r.Done
	}
	return min(end, r.Open+most)
}

// fair is the largest ratio of the services that two processes get for a session.
const fair = 1.5

// turns judges that processes take turns. Only requests that were served while all processes had a waiter
// count.
func (h *history) turns() {
	served := make([]int, h.Processes)
	for i := range h.all {
		if r := &h.all[i]; r.Open > 0 && r.Exclusive && !r.New && h.wanted(r) {
			served[r.Process]++
		}
	}
	most, least := slices.Max(served), slices.Min(served)
	if most >= 20 && float64(most) > fair*float64(least+1) {
		h.broken("processes take turns", nil, "they were served %v times", served)
	}
}

// wanted reports whether all processes had a waiter for a session when a request got it, and for long
// enough for the others to know.
func (h *history) wanted(r *Request) bool {
	waits, n := make([]bool, h.Processes), 0
	for _, x := range h.bySession[r.Cookie] {
		if x.Cookie == r.Cookie && x.Asked+20*h.Latency < r.Open && x.waits() >= r.Open && !waits[x.Process] {
			waits[x.Process] = true
			n++
		}
	}
	return n == h.Processes
}
