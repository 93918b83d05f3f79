package history

import "time"

// An Ending ends sessions of users from outside, whatever holds them: one session, or all of a user. It
// does so once, in one step, between Began and End. If its outcome is Unknown, it may have been done
// then, or later, or not at all.
type Ending struct {
	Number     int
	Process    int
	Life       int    // how often the process had crashed before
	ID         string // the one session
	User       string // or the user whose sessions are ended, except the one with the ID Spared
	Spared     string
	Most       int // not 0: it ends only what is beyond this number, each session by a command of its own
	Began, End time.Duration
	Outcome    Outcome
	Cause      Cause // Gone: there was no such session
	Why        string
}

// over is when an ending cannot take effect any more. One with a response was done, and is not done
// again, unless Redis has forgotten it. A message may be late for several reasons at once. But all of a
// user's sessions are ended within a Timeout after the command was sent, or never.
func (h *history) over(e *Ending) time.Duration {
	switch late := e.End + 3*h.Lateness + slack; {
	case h.Strict || e.Outcome == Answered && (e.ID != "" || !h.forgotten(e.Began, late)):
		return e.End
	case e.ID != "" || e.Most > 0:
		return late
	default:
		return min(late, e.Began+2*h.Timeout+slack)
	}
}

// logsIn reports whether a request changes the user of its session to the given one.
func (r *Request) logsIn(user string) bool { return user != "" && r.LogsIn == user && r.User != user }

// barred reports whether a login may be refused because all sessions of its user were ended after its
// request had arrived, or so shortly before that its process could not know.
func (h *history) barred(r *Request) bool {
	for i := range h.Endings {
		e := &h.Endings[i]
		if r.logsIn(e.User) && e.Began <= r.End && r.Began <= h.over(e)+h.behind(e, r) {
			return true
		}
	}
	return false
}

// behind is by how much the process of a request may believe Redis's clock to be behind the time that an
// ending has read there: by the way of a reply that it has heard, and by the fraction of a µs. A process
// that has the reply to the ending knows that time.
func (h *history) behind(e *Ending, r *Request) time.Duration {
	const fractions = 3 * time.Microsecond
	switch {
	case e.Outcome == Answered && e.Process == r.Process && e.Life == r.Life:
		return 0
	case h.Strict:
		return h.Latency + fractions
	}
	return min(3*h.Lateness, h.Timeout) + fractions
}

// arrivedBefore reports whether a request is a login that had arrived before an ending of all of its
// user's sessions began. Such a login must not begin a session that the ending has ended or refused.
func (h *history) arrivedBefore(x *Request, e *Ending) bool {
	return x.logsIn(e.User) && x.Began < e.Began && !h.forgotten(e.Began, x.End)
}

// movedEndings returns the endings by ID once more, for each session that the ID's session may have become: an ending
// that finds that the ID has moved ends what it has become.
func (h *history) movedEndings() (all []Ending) {
	for i := range h.Endings {
		if e := h.Endings[i]; e.ID != "" && e.Cause != Gone {
			for _, id := range h.goesOnAs(e.ID) {
				e.ID = id
				all = append(all, e)
			}
		}
	}
	return all
}

// goesOnAs returns the successors of a session, up to the first that is another user's.
func (h *history) goesOnAs(id string) []string {
	user, ids := "", h.successors(id)
	if x := h.began(id); x != nil {
		user = x.SetUser
	}
	for i, id := range ids {
		x := h.began(id)
		if x == nil || user != "" && x.SetUser != user {
			return ids[:i]
		}
		user = x.SetUser
	}
	return ids
}

// began returns the request that began a session, or nil.
func (h *history) began(id string) *Request { return h.beginners[id] }

// aimsAt reports whether an ending ends a session: by its ID, or by its user. A Renew of the spared
// session is not spared, since the new ID was not known. An ending that has found nothing ends nothing, unless Redis has lost
// its data meanwhile: then the ending may have been repeated.
func (h *history) aimsAt(e *Ending, id string) bool {
	if e.ID != "" {
		return e.ID == id && (e.Cause != Gone || h.lost(id, e.Began, e.End))
	}
	x := h.began(id)
	return x != nil && x.SetUser == e.User && id != e.Spared && (e.Most == 0 || h.evicts(e, x))
}

// endedUnder reports whether the session of a request may have been ended while the request used it. The
// process that holds a session without a user may lend it once more, to a request that comes after the
// end; nothing is saved then.
func (h *history) endedUnder(r *Request) bool {
	for i := range h.mayEnd {
		if e := &h.mayEnd[i]; h.aimsAt(e, r.Cookie) && e.Began <= r.End && (h.over(e) >= r.Began || r.User == "") {
			return true
		}
	}
	return false
}

// takenAway is endedUnder, but also true if others may have ended the session, if its lifetime may have ended, or if it may be
// lost.
func (h *history) takenAway(r *Request) bool {
	for _, e := range h.bySession[r.Cookie] {
		if e != r && e.ending(r.Cookie) && e.Seal <= r.End && e.End >= r.Began {
			return true
		}
	}
	return h.mayBeTooOld(r, r.End) || h.endedUnder(r) || h.lost(r.Cookie, 0, r.End)
}

// mayBeTooOld reports whether the lifetime of the session that a request had may have ended by then.
func (h *history) mayBeTooOld(r *Request, then time.Duration) bool {
	return h.Lifetime > 0 && len(r.Saw) > 0 && then >= h.created(last(r.Saw))+h.Lifetime
}

// mayBeEnded reports whether the session that y does not find may have been ended. A request that asked
// at the time there still had it.
func (h *history) mayBeEnded(y *Request, there time.Duration) bool {
	for i := range h.mayEnd {
		if e := &h.mayEnd[i]; h.aimsAt(e, y.Cookie) && e.Began <= y.Open && h.over(e) >= there {
			return true
		}
	}
	return false
}

// endings judges what ends a user's sessions, and that those stay with their user.
func (h *history) endings() {
	for i := range h.Endings {
		e := &h.Endings[i]
		if h.Strict && e.Outcome != Answered && e.Cause != Cancelled {
			h.broken("without faults a refusal has a reason", nil, "the end #%d failed%s", e.Number, e.Why)
		}
		if limit := h.Timeout + h.Timeout/4 + slack; e.End-e.Began > limit {
			h.broken("every wait is bounded", nil, "the end #%d took %s; the bound is %s", e.Number, ms(e.End-e.Began), ms(limit))
		}
		if e.Outcome != Answered {
			continue
		}
		dead := h.dead(e)
		for j := range h.all {
			if x := &h.all[j]; h.arrivedBefore(x, e) && x.Outcome == Answered && x.Seal > e.End {
				h.broken("what was ended is over", with(x), "#%d had ended all sessions of %s by %s; #%d arrived before that at %s, and logged in after %s",
					e.Number, e.User, ms(e.End), x.Number, ms(x.Began), ms(x.Seal))
			}
			if r := &h.all[j]; dead[r.Cookie] && !r.New && r.Open > 0 {
				h.outlived(e, r)
			}
		}
		for j := range h.Endings {
			if again := &h.Endings[j]; dead[again.ID] && again != e && again.Outcome == Answered && again.Cause != Gone && again.Began > e.End {
				h.broken("what was ended is over", with(h.began(again.ID)), "#%d had ended it by %s, and #%d did so again at %s", e.Number, ms(e.End), again.Number, ms(again.Began))
			}
		}
		if e.ID != "" && e.Cause == Gone { // a request that does not find the session means the same
			h.explain(&Request{Number: e.Number, Cookie: e.ID, Asked: e.Began, Open: e.End, End: e.End, New: true})
		}
	}
	for i := range h.all {
		r := &h.all[i]
		if x := h.began(r.Cookie); x != nil && r.Open > 0 && !r.New && r.User != x.SetUser {
			h.broken("a session is its user's", with(x, r), "#%d has begun it for %q, #%d had it as that of %q", x.Number, x.SetUser, r.Number, r.User)
		}
	}
}

// dead returns the sessions that have certainly ended when an ending has its response. These are the sessions that
// began before the ending, the sessions of logins that arrived before it, and every new ID that one of these
// sessions ever gets: either the new ID was on the list already, or the old ID was not, and the Renew fails.
func (h *history) dead(e *Ending) map[string]bool {
	dead := make(map[string]bool)
	if e.ID != "" {
		for _, id := range append(h.goesOnAs(e.ID), e.ID) {
			dead[id] = true
		}
		return dead
	}
	for id, x := range h.beginners {
		if x.SetUser == e.User && id != e.Spared && (x.End < e.Began || h.arrivedBefore(x, e)) {
			dead[id] = true
		}
	}
	for more := true; more; {
		more = false
		for id, x := range h.beginners {
			if !dead[id] && id != e.Spared && dead[x.Cookie] && x.Effect == Renew && x.SetUser == e.User {
				dead[id], more = true, true
			}
		}
	}
	return dead
}

// outlived judges a request that had a session which an ending has certainly ended.
func (h *history) outlived(e *Ending, r *Request) {
	const rule = "what was ended is over"
	switch {
	case h.asked(r) > e.End && (r.User != "" || r.Outcome == Answered): // see endedUnder
		h.broken(rule, with(h.began(r.Cookie), r), "#%d had ended it by %s; #%d asked at %s and saw %v", e.Number, ms(e.End), r.Number, ms(r.Asked), r.Saw)
	case r.Outcome != Answered || r.Effect == Nothing || r.Effect == Destroy: // it has nothing left to do
	case r.Seal > e.End:
		h.broken(rule, with(h.began(r.Cookie), r), "#%d had ended it by %s; #%d held it, and saved it after %s", e.Number, ms(e.End), r.Number, ms(r.Seal))
	}
}
