package history

import "slices"

// order judges what requests saw, and that the versions of a session are a chain.
func (h *history) order() {
	for i := range h.all {
		if r := &h.all[i]; r.credible() {
			h.sight(r)
		}
	}
	h.forks()
}

// sight judges what one request saw.
func (h *history) sight(r *Request) {
	const rule = "what is seen was written"
	if r.New {
		if len(r.Saw) > 0 {
			h.broken(rule, with(r), "#%d found %v in a session that is not there", r.Number, r.Saw)
		}
		return
	}
	version := last(r.Saw)
	w := h.writers[version]
	switch {
	case version == 0:
		h.broken(rule, with(r), "#%d found an empty list in a session that is there", r.Number)
	case w == nil:
		h.broken(rule, with(r), "#%d saw %d, which nobody has written", r.Number, version)
	case w.Outcome == Refused:
		h.broken("nothing of a refused request is seen", with(r, w), "#%d saw %d, which was refused: %s", r.Number, version, w.Cause)
	case !slices.Equal(w.Wrote, r.Saw):
		h.broken(rule, with(r, w), "#%d saw %v, but #%d wrote %v", r.Number, r.Saw, w.Number, w.Wrote)
	case w.home() != r.Cookie:
		h.broken("each visitor sees its own session", with(r, w), "#%d saw %d, which is of another session", r.Number, version)
	}
}

// home is the ID of the session in which a version can be seen.
func (r *Request) home() string {
	if r.SetID != "" {
		return r.SetID
	}
	return r.ID
}

// forks judges that no two versions that took effect were built on the same version.
func (h *history) forks() {
	child := make(map[int]*Request)
	for i := range h.all {
		r := &h.all[i]
		if r.Effect == Nothing || !h.effective[r.Number] || r.New || r.Effect == Destroy && h.endedUnder(r) {
			continue // or it found nothing left to end
		}
		before := last(r.Saw)
		// A Create that comes late looks like the Create of a new ID. If Redis has lost the record, it brings
		// back the first version.
		revived := len(r.Saw) == 1 && h.lost(r.Cookie, 0, r.Open)
		if other := child[before]; other != nil && before != 0 && !revived {
			h.broken("no update is lost", with(other, r, h.writers[before]), "#%d and #%d were both built on %d", other.Number, r.Number, before)
		}
		child[before] = r
	}
}
