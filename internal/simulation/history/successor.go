package history

// moves is how many times an ID may have been moved for a logout to find the session that it has become.
const moves = 8

// successors returns the IDs of the sessions that a session has become, with a cookie that a client has got. The
// session of another Renew is never asked for.
func (h *history) successors(id string) (ids []string) {
	last := id
	for range len(h.all) {
		next := ""
		for _, x := range h.bySession[last] {
			if x.Effect == Renew && x.Cookie == last && x.SetID != "" {
				next = x.SetID
			}
		}
		if next == "" || next == id {
			break
		}
		ids, last = append(ids, next), next
	}
	return ids
}

// follows reports whether a request may have ended the session that its member's ID has become.
func (h *history) follows(r *Request) bool {
	return (r.Destroys || r.LogsIn != "") && r.Seal > 0 && r.missed() != "" && h.mayBeMoved(r.Member, r.Began, r.End)
}

// aims reports whether a request that follows is to end a session. A login ends only those of other users.
func (h *history) aims(r *Request, id string) bool {
	user := h.began(id).SetUser
	return r.LogsIn == "" || user != "" && user != r.LogsIn
}

// ownEndings returns the endings that requests may have made, of the sessions to which their members' IDs had
// moved.
func (h *history) ownEndings() (own []Ending) {
	for i := range h.all {
		r := &h.all[i]
		if !h.follows(r) {
			continue
		}
		for _, id := range h.successors(r.Member) {
			if h.aims(r, id) {
				outcome := r.Outcome
				if outcome == Refused { // after the ending
					outcome = Unknown
				}
				own = append(own, Ending{Number: r.Number, Process: r.Process, Life: r.Life, ID: id, Began: r.Seal, End: r.answered(), Outcome: outcome})
			}
		}
	}
	return own
}

// followed judges that a logout, or a login as another user, has ended the session to which its member's ID had
// moved. Then no successor is alive, however many there are and whenever they began. If a Renew came before the
// end, the end found its new ID. If it came later, it found nothing to renew.
func (h *history) followed() {
	const rule = "a logout ends what its session has become"
	for i := range h.all {
		r := &h.all[i]
		if r.Outcome != Answered || !h.follows(r) || !h.certainlyMoved(r.Member, r.Began, r.End) {
			continue
		}
		ids := h.successors(r.Member)
		if len(ids) > moves || h.stays(r, ids) {
			continue
		}
		for _, id := range ids {
			for _, z := range h.bySession[id] {
				switch {
				case z.Cookie != id || z.New || z.Open == 0:
				case h.asked(z) > r.End && (z.User != "" || z.Outcome == Answered): // see endedUnder
					h.broken(rule, with(r, z), "#%d had ended it by %s; #%d asked at %s and saw %v", r.Number, ms(r.End), z.Number, ms(z.Asked), z.Saw)
				case z.Outcome == Answered && z.Effect != Nothing && z.Effect != Destroy && z.Seal > r.End:
					h.broken(rule, with(r, z), "#%d had ended it by %s; #%d held it, and saved it after %s", r.Number, ms(r.End), z.Number, ms(z.Seal))
				}
			}
		}
	}
}

// stays reports whether one of the sessions may stay when a request ends them. One reason is that Redis may have
// lost what leads to it.
func (h *history) stays(r *Request, ids []string) bool {
	for _, id := range ids {
		if !h.aims(r, id) || h.lost(id, 0, r.End) {
			return true
		}
	}
	return false
}
