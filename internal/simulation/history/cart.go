package history

import "slices"

// carts judges the cart of each session. Every write but a login and a Renew puts its own number there.
func (h *history) carts() {
	for i := range h.all {
		r := &h.all[i]
		w := h.writers[last(r.Saw)]
		if !r.credible() || r.New || w == nil { // the last is a violation that has been reported
			continue
		}
		if may := h.cartsAfter(w, nil); !slices.Contains(may, r.Cart) {
			h.broken("the cart stays", with(w, r), "#%d found the cart %d; #%d had left one of %v", r.Number, r.Cart, w.Number, may)
		}
	}
}

// cartsAfter returns the carts that may be in a session after a write; 0 is none. A login that finds no cart in its
// session has that of a session which it has taken over, if there is one. seen are the logins that led here.
func (h *history) cartsAfter(w *Request, seen []*Request) (may []int) {
	if w.LogsIn == "" || w.Cart != 0 {
		return []int{w.Puts}
	}
	if slices.Contains(seen, w) { // a broken history may have a circle
		return nil
	}
	for _, e := range h.takenOver(w) {
		may = append(may, h.cartsAfter(e, append(seen, w))...)
		for _, job := range h.bySession[e.SetID] {
			if job.Quiet && job.Effect != Nothing && job.Outcome != Refused && job.Seal <= w.answered() {
				may = append(may, job.Puts)
			}
		}
	}
	if !h.certainlyTakes(w) {
		may = append(may, 0)
	}
	slices.Sort(may)
	return slices.Compact(may)
}

// certainlyTakes reports whether a login has certainly taken over the values of a session.
func (h *history) certainlyTakes(l *Request) bool {
	for _, id := range h.certainlyTakenOver(l) {
		x := h.began(id)
		ended := slices.ContainsFunc(h.mayEnd, func(e Ending) bool { return h.aimsAt(&e, id) && e.Began <= l.answered() })
		if !ended && !h.mayBeClaimed(id, l.answered()) && l.answered()+slack < x.Seal+min(h.TTL, h.Lifetime) {
			return true
		}
	}
	return false
}
