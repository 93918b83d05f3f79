package history

import (
	"slices"
	"time"
)

// inTime reports whether a request came early enough for a session that should live until then. Then the
// session must exist, however long the request had to wait. This is judged only if no message is late.
func (h *history) inTime(y *Request, lives time.Duration) bool {
	late := 8*h.Latency + 2*time.Millisecond
	if y.Again { // it was refused before it asked for the lock
		late += 8 * h.Latency
	}
	return h.Strict && y.Asked+late < lives &&
		y.Open+2*time.Millisecond < h.created(y.sameSession(h))+h.Lifetime // the record counts whole ones
}

// sameSession returns a request that saw the session that r did not find.
func (r *Request) sameSession(h *history) *Request {
	for _, x := range h.bySession[r.Cookie] {
		if x.Outcome == Answered && x.version() != 0 && (x.SetID == r.Cookie || !x.New) {
			return x
		}
	}
	return r
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

// beginning returns the request from which a version's lifetime counts: the one that created its session,
// or a login in it that the handler made after the end of the lifetime.
func (h *history) beginning(version int) *Request {
	var first *Request
	for _, version := range slices.Backward(slices.Collect(h.chain(version))) {
		w := h.writers[version]
		anew := first != nil && w != nil && w.Effect == Renew && w.SetUser != "" && w.Done >= first.Open+h.Lifetime
		if first == nil || anew {
			first = w
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
