package history

import "time"

// inTime reports whether a request came early enough for a session that was to live
// until then, so that it must be there, however long the request had to wait. That is
// judged where nothing is late.
func (h *history) inTime(y *Request, lives time.Duration) bool {
	return h.Strict && !h.Foreign && y.Asked+8*h.Latency+2*time.Millisecond < lives &&
		y.Open+2*time.Millisecond < h.created(y.sameSession(h))+h.Lifetime // the record counts whole ones
}

// sameSession returns a request that saw the session that another did not find.
func (r *Request) sameSession(h *history) *Request {
	for _, x := range h.bySession[r.Cookie] {
		if x.Outcome == Answered && x.version() != 0 && (x.SetID == r.Cookie || !x.New) {
			return x
		}
	}
	return r
}

// idle judges that sessions do not outlive their time-outs.
func (h *history) idle() {
	slack := h.Lateness + 5*time.Millisecond
	// Whoever takes or waits for a session sees to it that it outlasts the lock.
	longest := max(h.TTL, h.Lease+2*time.Second)
	for _, id := range h.ids() {
		rs := h.bySession[id]
		for _, z := range rs {
			if z.Cookie != id || !z.credible() || z.New {
				continue
			}
			if used := h.lastUse(rs, z); used > 0 && z.Asked > used+longest+slack {
				h.broken("an idle session runs out", with(z), "#%d asked for it at %s, which nobody had done since %s", z.Number, ms(z.Asked), ms(used))
			}
			w := h.writers[h.root(last(z.Saw))]
			if w != nil && z.Asked > w.Done+h.Lifetime+slack {
				h.broken("a session ends with its lifetime", with(w, z), "#%d asked for it at %s; it was created before %s", z.Number, ms(z.Asked), ms(w.Done))
			}
		}
	}
}

// lastUse returns until when others may have put the idle time-out off.
func (h *history) lastUse(rs []*Request, z *Request) (used time.Duration) {
	for _, r := range rs {
		if r != z && r.Began < z.Asked {
			used = max(used, r.Done)
		}
	}
	return used
}
