package history

import "time"

// inTime reports whether a request came early enough for a session that should live until then. Then the
// session must exist, however long the request had to wait. This is judged only if no message is late.
func (h *history) inTime(y *Request, lives time.Duration) bool {
	late, asked := 8*h.Latency+2*time.Millisecond, y.Asked
	if y.Again { // it was refused before it asked for the lock
		late += 8 * h.Latency
	}
	if y.late() {
		asked = y.Open
	}
	return h.Strict && asked+late < lives &&
		y.Open+2*time.Millisecond < h.created(h.versionOf(y.Cookie))+h.Lifetime // the record counts whole milliseconds
}

// versionOf returns a version of a session, or 0 if none is known.
func (h *history) versionOf(id string) int {
	for _, x := range h.bySession[id] {
		switch {
		case x.Outcome != Answered:
		case x.SetID == id:
			return x.version()
		case !x.New && len(x.Saw) > 0:
			return last(x.Saw)
		}
	}
	return 0
}

// idle judges that sessions do not outlive their timeouts.
func (h *history) idle() {
	slack := h.Lateness + 5*time.Millisecond
	for _, id := range h.ids() {
		rs := h.bySession[id]
		for _, z := range rs {
			if z.Cookie != id || !z.credible() || z.New {
				continue
			}
			if lives := h.idleUntil(rs, z); lives > 0 && z.Asked > lives+slack {
				h.broken("an idle session runs out", with(z), "#%d asked for it at %s, but it was to live until %s", z.Number, ms(z.Asked), ms(lives))
			}
			w := h.beginning(last(z.Saw))
			if w != nil && z.Asked > w.Done+h.Lifetime+slack {
				h.broken("a session ends with its lifetime", with(w, z), "#%d asked for it at %s; it was created before %s", z.Number, ms(z.Asked), ms(w.Done))
			}
		}
	}
}

// beginning returns the request from which a version's lifetime counts: the last login, or the one that created the
// session.
func (h *history) beginning(version int) (first *Request) {
	for version := range h.chain(version) {
		w := h.writers[version]
		if w == nil {
			break
		}
		if first = w; w.LogsIn != "" {
			break
		}
	}
	return first
}

// idleUntil returns until when others may have extended the idle timeout. A request that takes or waits
// for a session makes it outlast the lock; a job does no more than that.
func (h *history) idleUntil(rs []*Request, z *Request) (until time.Duration) {
	lock := h.Lease + 2*time.Second
	for _, r := range rs {
		switch {
		case r == z || r.Began >= z.Asked:
		case r.Quiet:
			until = max(until, r.Done+lock)
		default:
			until = max(until, r.Done+max(h.TTL, lock))
		}
	}
	return until
}
