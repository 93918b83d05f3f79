package history

import (
	"cmp"
	"slices"
	"time"
)

// never is a time after every run.
const never = time.Duration(1<<63 - 1)

// mostUnclaimed is how many unclaimed sessions a user has at most. An older one counts as claimed.
const mostUnclaimed = 16

// A contact is when requests came with the cookie of a session. A job does not come with a cookie.
type contact struct {
	came   time.Duration // the first of them began
	opened time.Duration // the first of them had opened the session: it was claimed by then
}

// contacts notes when somebody has come back with each session.
func (h *history) contacts() {
	h.contact = make(map[string]contact)
	for i := range h.all {
		r := &h.all[i]
		for _, id := range []string{r.Member, r.Guest} {
			if r.Quiet || id == "" {
				continue
			}
			c := h.contactOf(id)
			if c.came = min(c.came, r.Began); r.opens(id) {
				c.opened = min(c.opened, r.Open)
			}
			h.contact[id] = c
		}
	}
}

func (h *history) contactOf(id string) contact {
	if c, found := h.contact[id]; found {
		return c
	}
	return contact{never, never}
}

// opens reports whether a request has got a session with its content.
func (r *Request) opens(id string) bool { return r.Cookie == id && r.Open > 0 && !r.New }

// claims reports whether a request may be the one that claims its session.
func (h *history) claims(r *Request) bool {
	x := h.began(r.Cookie)
	return x != nil && x.SetUser != "" && !r.Quiet && h.contactOf(r.Cookie).opened >= r.Asked
}

// deadIDs returns the IDs with which a login came, and which opened nothing.
func (r *Request) deadIDs() (ids []string) {
	if r.LogsIn == "" || r.Seal == 0 || r.Member != "" && r.opens(r.Member) {
		return nil
	}
	for _, id := range []string{r.Member, r.Guest} {
		if id != "" && !r.opens(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// led returns how many round trips a login may need to follow its IDs.
func (h *history) led(l *Request) (n int) {
	for _, id := range l.deadIDs() {
		if h.mayBeMoved(id, l.Began, l.answered()) {
			n += len(h.successors(id)) + 1
		}
	}
	return n
}

// takenOver returns the requests that began the sessions whose values a login may have taken over: unclaimed
// sessions of its user to which an ID of the login has moved. There may be one whose cookie no client has got.
func (h *history) takenOver(l *Request) (begun []*Request) {
	for _, dead := range l.deadIDs() {
		if !h.mayBeMoved(dead, l.Began, l.answered()) {
			continue
		}
		for _, id := range append([]string{dead}, h.successors(dead)...) {
			for _, e := range h.bySession[id] {
				if e.Effect == Renew && e.ending(id) && e.Seal <= l.answered() && cmp.Or(e.LogsIn, e.User) == l.LogsIn && h.contactOf(e.SetID).opened > l.Seal {
					begun = append(begun, e)
				}
			}
		}
	}
	return begun
}

// certainlyTakenOver returns those sessions of takenOver that a login must have found if they were alive and
// unclaimed.
func (h *history) certainlyTakenOver(l *Request) (ids []string) {
	for _, id := range l.deadIDs() {
		for range h.all { // a broken history may have a circle
			next := h.moves(id)
			if next == nil || !h.certainlyMoved(id, 0, l.End) {
				break
			}
			if id = next.SetID; next.SetUser == l.LogsIn && next.End < l.Seal && h.moves(id) == nil {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// moves returns the answered request that has given an ID its successor, or nil.
func (h *history) moves(id string) *Request {
	for _, e := range h.bySession[id] {
		if e.Effect == Renew && e.ending(id) && e.Outcome == Answered && e.SetID != "" {
			return e
		}
	}
	return nil
}

// replaced returns the requests that began the sessions that a login may have replaced. An earlier login may have
// replaced such a session. Then the login replaces that one's session, too.
func (h *history) replaced(l *Request) []*Request {
	begun := h.takenOver(l)
	if h.MaxSessions > 0 && h.adds(l) {
		for _, id := range h.ids() {
			if e := h.began(id); e != nil && e.SetUser == l.LogsIn && e.Seal <= l.answered() {
				begun = append(begun, e)
			}
		}
	}
	for done := []*Request{l}; ; {
		before := len(done)
		for _, o := range h.replacing {
			also := h.takenOver(o)
			shares := slices.ContainsFunc(also, func(e *Request) bool { return slices.Contains(begun, e) })
			if shares && !slices.Contains(done, o) && o.Seal <= l.answered() {
				begun, done = append(append(begun, o), also...), append(done, o)
			}
		}
		if len(done) == before {
			return begun
		}
	}
}

// claimEndings returns the endings that requests may have made by claiming a login that has replaced other sessions.
// A session that a request has opened was claimed then, and nothing replaces it any more.
func (h *history) claimEndings() (own []Ending) {
	for _, l := range h.replacing {
		opened := h.contactOf(l.SetID).opened
		if l.SetID == "" {
			continue
		}
		for _, e := range h.replaced(l) {
			id := e.SetID
			if id == "" || id == l.SetID || h.contactOf(id).opened < never {
				continue
			}
			for _, z := range h.bySession[l.SetID] {
				if z.Cookie != l.SetID || z.Quiet || z.Began > opened {
					continue
				}
				e := Ending{Number: z.Number, Process: z.Process, Life: z.Life, ID: id, Began: z.Began, End: z.waits()}
				if z.opens(l.SetID) {
					e.Outcome = Answered
				}
				own = append(own, e)
			}
		}
	}
	return own
}

// gaveWay judges that a session has ended once the login that has replaced it is claimed. The exception is a
// session that may have been claimed before that.
func (h *history) gaveWay() {
	const rule = "a claim ends what the login has replaced"
	for _, l := range h.replacing {
		claimed := h.contactOf(l.SetID).opened
		if l.Outcome != Answered || l.SetID == "" || claimed == never {
			continue
		}
		for _, id := range append(h.certainlyTakenOver(l), h.yielding(l)...) {
			if h.lost(l.SetID, l.Asked, claimed) || h.mayBeClaimed(id, claimed) {
				continue
			}
			for _, z := range h.bySession[id] {
				if z.opens(id) && h.asked(z) > claimed {
					h.broken(rule, with(l, z), "#%d has replaced it, and was claimed by %s; #%d asked at %s and saw %v", l.Number, ms(claimed), z.Number, ms(z.Asked), z.Saw)
				}
			}
			for i := range h.Endings {
				if e := &h.Endings[i]; e.ID == id && e.Outcome == Answered && e.Cause != Gone && e.Began > claimed {
					h.broken(rule, with(l, h.began(id)), "#%d has replaced it, and was claimed by %s; #%d ended it once more at %s", l.Number, ms(claimed), e.Number, ms(e.Began))
				}
			}
		}
	}
}

// mayBeClaimed reports whether a session may count as claimed at a time: since a request has come with it, an EndAll
// has spared it, there were too many, or Redis has lost what it knew.
func (h *history) mayBeClaimed(id string, by time.Duration) bool {
	x, n := h.began(id), 0
	if h.contactOf(id).came <= by || h.lost(id, x.Asked, by) {
		return true
	}
	for i := range h.Endings {
		if h.Endings[i].Spared == id {
			return true
		}
	}
	for i := range h.all {
		r := &h.all[i]
		if (r.LogsIn == x.SetUser || r.LogsIn == "" && r.Renews && r.User == x.SetUser) && r.Seal > 0 && r.Seal <= by && r.answered() >= x.Seal {
			n++
		}
	}
	return n >= mostUnclaimed
}
