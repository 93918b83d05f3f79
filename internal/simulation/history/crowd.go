package history

import "time"

// evictions returns the endings that logins may have made because of MaxSessions. A login that was refused in the end
// may have ended sessions before.
func (h *history) evictions() (own []Ending) {
	if h.MaxSessions == 0 || h.RefuseLogin {
		return nil
	}
	for i := range h.all {
		if l := &h.all[i]; h.adds(l) {
			own = append(own, Ending{Number: l.Number, Process: l.Process, Life: l.Life, User: l.LogsIn, Spared: l.SetID, Began: l.Seal, End: l.answered(), Most: h.MaxSessions})
		}
	}
	return own
}

// adds reports whether a request is a login that adds a session to those of its user.
func (h *history) adds(l *Request) bool {
	return l.LogsIn != "" && l.Seal > 0 && (l.New || l.User != l.LogsIn)
}

// evicts reports whether a login with MaxSessions may have ended a session: only if there were that many others which
// would not expire before it. An unclaimed session does not count.
func (h *history) evicts(e *Ending, x *Request) bool {
	n, since := 1, h.created(x.Number)
	for id, other := range h.beginners {
		if other.SetUser == e.User && id != x.SetID && id != e.Spared && h.mayCount(id, e.End) {
			if w := h.beginning(other.Number); w != nil && w.answered()+slack >= since {
				n++
			}
		}
	}
	return n >= e.Most
}

// mayCount reports whether a session may have been claimed by a time.
func (h *history) mayCount(id string, by time.Duration) bool {
	x := h.began(id)
	return x.Seal <= by && h.mayBeClaimed(id, by)
}

// yielding returns the sessions that give way to a login because of MaxSessions, if they are unclaimed: with room for
// one, all do.
func (h *history) yielding(l *Request) (ids []string) {
	if h.MaxSessions != 1 || !h.adds(l) {
		return nil
	}
	for _, id := range h.ids() {
		if x := h.began(id); x != nil && x.SetUser == l.LogsIn && x.Outcome == Answered && x.answered() < l.Seal {
			ids = append(ids, id)
		}
	}
	return ids
}

// crowds judges logins with MaxSessions.
func (h *history) crowds() {
	if h.MaxSessions == 0 {
		return
	}
	over := h.certainEnds()
	for i := range h.all {
		l := &h.all[i]
		switch {
		case l.Cause == Crowded:
			if n := h.rivals(l, over); n < h.MaxSessions {
				h.broken("a login is refused only if there are MaxSessions others", with(l), "#%d was refused; %d sessions of %s may have been in use, MaxSessions is %d", l.Number, n, l.LogsIn, h.MaxSessions)
			}
		case l.Outcome == Answered && h.adds(l) && l.SetID != "" && h.contactOf(l.SetID).opened < never:
			h.crowded(l)
		}
	}
}

// crowded judges that a login leaves no more than MaxSessions sessions. A session counts if it was claimed before the
// login, and is found after it.
func (h *history) crowded(l *Request) {
	var left []*Request
	for _, id := range h.ids() {
		x := h.began(id)
		if x == nil || x.SetUser != l.LogsIn || id == l.SetID || id == l.Cookie || h.contactOf(id).opened >= l.Seal {
			continue
		}
		for _, z := range h.bySession[id] {
			if z.opens(id) && h.asked(z) > l.answered() && !h.lost(id, 0, z.Open) {
				left = append(left, z)
				break
			}
		}
	}
	if len(left) >= h.MaxSessions {
		h.broken("a user has no more than MaxSessions sessions", with(append(left, l)...), "#%d logged in by %s, and %d older sessions were found after that; MaxSessions is %d", l.Number, ms(l.answered()), len(left), h.MaxSessions)
	}
}

// rivals returns how many sessions may have made RefuseLogin refuse a login.
func (h *history) rivals(l *Request, over map[string]time.Duration) (n int) {
	for id, x := range h.beginners {
		end, ended := over[id]
		if x.SetUser == l.LogsIn && id != l.Cookie && !(ended && end < l.Began) && h.mayCount(id, l.End) {
			n++
		}
	}
	return n
}

// certainEnds returns by when each session had certainly ended.
func (h *history) certainEnds() map[string]time.Duration {
	over := make(map[string]time.Duration)
	note := func(id string, at time.Duration) {
		if end, known := over[id]; !known || at < end {
			over[id] = at
		}
	}
	for id, rs := range h.bySession {
		for _, r := range rs {
			switch {
			case r.Cookie == id && r.gone():
				note(id, r.Open)
			case r.ending(id) && r.Outcome == Answered:
				note(id, r.End)
			}
		}
	}
	for i := range h.Endings {
		if e := &h.Endings[i]; e.Outcome == Answered {
			for id := range h.dead(e) {
				note(id, e.End)
			}
		}
	}
	return over
}
