package history

import "time"

// tombstone is how long an ended ID is remembered.
const tombstone = time.Minute

// ends judges which sessions existed and which did not.
func (h *history) ends() {
	for i := range h.all {
		if r := &h.all[i]; r.gone() {
			h.explain(r)
		}
	}
	for i := range h.misses {
		h.explain(&h.misses[i])
	}
	for _, id := range h.ids() {
		rs := h.bySession[id]
		h.returns(id, rs)
	}
}

// ending reports whether a request may have ended a session.
func (r *Request) ending(id string) bool {
	return (r.Effect == Destroy || r.Effect == Renew) && r.Outcome != Refused && r.Cookie == id && !r.New
}

// explain looks for the reason why a session did not exist.
func (h *history) explain(y *Request) {
	id := y.Cookie
	rs := h.bySession[id]
	floor, newest := 0, (*Request)(nil)
	var began, lives, there time.Duration
	for _, x := range rs {
		if x.Outcome != Answered || x.End >= y.Asked || x.Open == 0 {
			continue
		}
		if x.SetID == id {
			began = x.Open
			there = max(there, x.Seal)
		} else {
			there = max(there, x.Asked)
		}
		if x.gone() && x.SetID != id {
			return // it was seen before, and that violation has been reported
		}
		if d := h.depth(x.version()); d > floor {
			floor, newest = d, x
		}
		lives = max(lives, h.used(x)+h.TTL)
	}
	if newest == nil || h.lost(id, began, y.Open) || h.mayBeEnded(y, there) {
		return
	}
	lives = min(lives, h.created(newest.version())+h.Lifetime)
	for _, e := range rs {
		if e.ending(id) && e.Open < y.Open && h.depth(last(e.Saw))+1 >= floor && h.only(e) {
			return
		}
	}
	if y.Open+time.Millisecond >= lives && !h.inTime(y, lives) {
		return
	}
	h.broken("a session is there until it ends", with(newest, y), "#%d found nothing at %s; #%d had been answered at %s, and nobody has ended the session. It was to live until %s",
		y.Number, ms(y.Open), newest.Number, ms(newest.End), ms(lives))
}

// only reports whether no version that took effect was built on the same version as an ending.
func (h *history) only(e *Request) bool {
	for _, r := range h.bySession[e.Cookie] {
		if r != e && r.Effect != Nothing && !r.New && last(r.Saw) == last(e.Saw) && h.effective[r.Number] {
			return false
		}
	}
	return true
}

// created is a time before which the lifetime of a version's session has not begun.
func (h *history) created(version int) time.Duration {
	if w := h.beginning(version); w != nil {
		return w.Open
	}
	return 0
}

// used is the earliest time from which a request has certainly extended the idle timeout. A request that
// only looked may have lost its lock, and still gets its response.
func (h *history) used(r *Request) time.Duration {
	switch {
	case r.Quiet:
		return 0
	case !r.Exclusive && r.Effect == Nothing:
		return r.Asked
	case r.Effect == Nothing && (!h.Exclusion || r.Seal-r.Open >= h.MaxHold-8*h.Latency):
		return 0
	}
	return r.Seal
}

// returns judges that an ended session does not come back.
func (h *history) returns(id string, rs []*Request) {
	var first *Request // the first request that found or made the session gone, and had finished
	when := time.Duration(1<<63 - 1)
	for _, r := range rs {
		switch {
		case r.Cookie != id:
		case r.gone() && r.Open < when:
			first, when = r, r.Open
		case r.ending(id) && r.Outcome == Answered && r.End < when:
			first, when = r, r.End
		}
	}
	if first == nil {
		return
	}
	for _, z := range rs {
		if z.Cookie == id && z.credible() && !z.New && h.asked(z) > when && !h.lost(id, 0, z.Open) {
			h.broken("what has ended does not come back", with(first, z), "the session had ended for #%d at %s; #%d asked at %s and saw %v",
				first.Number, ms(when), z.Number, ms(z.Asked), z.Saw)
			return
		}
	}
}
