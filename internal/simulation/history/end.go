package history

import "time"

// tombstone is how long an ended ID is remembered.
const tombstone = time.Minute

// ends judges which sessions existed and which did not.
func (h *history) ends() {
	for i := range h.all {
		r := &h.all[i]
		if r.gone() {
			h.explain(r)
		}
		h.cookie(r)
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
	lives = min(lives, h.created(newest)+h.Lifetime)
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

// created is a time before which the session of a request's version was created.
func (h *history) created(r *Request) time.Duration {
	if w := h.writers[h.root(r.version())]; w != nil {
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
	var first *Request // the first one that found or made it gone, and had finished
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
		if z.Cookie == id && z.credible() && !z.New && z.Asked > when && !h.lost(id, 0, z.Open) {
			h.broken("what has ended does not come back", with(first, z), "the session had ended for #%d at %s; #%d asked at %s and saw %v",
				first.Number, ms(when), z.Number, ms(z.Asked), z.Saw)
			return
		}
	}
}

// issued is when a session's cookie was set.
func (h *history) issued(id string) time.Duration {
	for _, r := range h.bySession[id] {
		if r.SetID == id {
			return r.Open
		}
	}
	return 0
}

// cookie judges what a response does to the client's cookie.
func (h *history) cookie(r *Request) {
	switch {
	case r.Outcome == Answered && r.Status > 0 && r.New && r.Effect == Write && r.SetID == "":
		h.broken("a write is never lost in silence", with(r), "#%d wrote to a session that was not there, was answered %d, and got no cookie for another", r.Number, r.Status)
	case r.Status >= 400 && r.SetID != "" && r.Outcome != Answered: // a late change is a 500 after a commit
		h.broken("a refusal sets no cookie", with(r), "#%d was answered with %d and a cookie", r.Number, r.Status)
	case r.Cause == Gone && r.Anew && !h.barred(r) && (r.New || !r.Optimistic && !h.takenAway(r)): // otherwise it had begun its response, on what it had read before
		h.broken("nobody is shut out", with(r), "#%d may begin another session, and was refused since its own had ended", r.Number)
	case r.gone() && r.SetID != "" && !r.Anew && r.Asked < h.issued(r.Cookie)+h.Lifetime: // later its cookie has expired
		for _, e := range h.bySession[r.Cookie] {
			if e.ending(r.Cookie) && e.Outcome == Answered && e.End < r.Asked && r.Open < e.Seal+tombstone && !h.lost(r.Cookie, e.Asked, r.Open) {
				h.broken("an ended session's answer sets no cookie", with(e, r), "#%d had ended it; #%d got a new cookie", e.Number, r.Number)
				return
			}
		}
	}
}
