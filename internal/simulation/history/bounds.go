package history

import "time"

// slack is for what a bound does not count, such as timers of whole milliseconds.
const slack = 2 * time.Millisecond

// bounds judges how long requests took.
//
// A request waits for its session for LockWait, or for a Timeout if that is longer. The round trip that
// is under way at the end may take an eighth of a Timeout more, and cleaning up after a failure a
// quarter. If a lock is passed on to the request with too short a lease, it gives that back first. A commit
// takes at most a Timeout and an eighth for everything that it needs: the round trip of the same tenure that
// is under way, an extension in between, its own round trip, and with Renew a second one. An optimistic
// request that wrote waits when it commits.
func (h *history) bounds() {
	commit, cleaned := h.Timeout+h.Timeout/8+slack, h.Timeout/4
	wait := max(h.LockWait, h.Timeout) + h.Timeout/8 + cleaned + slack
	exchange := h.Timeout + cleaned + slack
	for i := range h.all {
		r := &h.all[i]
		wait, unlocked, left := wait+r.GaveBack, 16*h.Latency+slack, exchange
		if r.late() { // needs one more round trip
			wait, unlocked = wait+exchange, 2*unlocked
		}
		if h.claims(r) { // that costs a round trip, and the release one more if it fails, or if Redis does not know the script
			wait, unlocked, left = wait+commit, unlocked+8*h.Latency, left+commit
		}
		switch {
		case r.Again: // since before the first run's commit was refused
			h.within(r, "its session", r.waits()-r.Asked, exchange+wait)
		case h.Strict && !r.Exclusive && r.Open > 0:
			h.within(r, "a session that it need not lock", r.Open-r.Asked, unlocked)
		default:
			h.within(r, "its session", r.waits()-r.Asked, wait)
		}
		if r.Seal > 0 {
			limit := commit
			if r.Optimistic { // it may be refused, and then waits for the lock
				limit += exchange + wait
			}
			if n := h.led(r); n > 0 { // to find out to which session an ID has moved
				limit += time.Duration(n) * exchange
			}
			if h.MaxSessions > 0 && h.adds(r) { // to look which sessions have expired, to count anew, and to end one
				limit += 8 * exchange
			}
			if h.follows(r) { // a round trip for each successor, for the end of the last, and to see that nothing came after it
				limit += time.Duration(len(h.successors(r.Member))+3) * exchange
			}
			h.within(r, "its commit", r.answered()-r.Seal, limit)
		}
		if r.Cause == Broken {
			h.broken("no script fails", with(r), "#%d: %s", r.Number, r.Why)
		}
		if held := r.Seal - r.Open; r.Exclusive && !r.New && r.Effect != Nothing && r.Outcome == Answered && held > h.MaxHold+slack && !(r.Effect == Destroy && h.endedUnder(r)) {
			h.broken("who holds for too long saves nothing", with(r), "#%d held the session for %s, MaxHold is %s", r.Number, ms(held), ms(h.MaxHold))
		}
		if n := h.ahead(r); n > h.MaxWaiters+h.stragglers() {
			h.broken("no more than MaxWaiters wait", with(r), "#%d waited behind %d others, MaxWaiters is %d", r.Number, n, h.MaxWaiters)
		}
		if r.Leaves > 0 && r.Open == 0 && r.Done > 0 {
			h.within(r, "to be given up when its client had left", r.Done-max(r.Leaves, r.Asked), left)
		}
	}
}

// answered is when the commit was over.
func (r *Request) answered() time.Duration {
	if r.Cause == Panicked {
		return r.Done
	}
	return r.End
}

func (h *history) within(r *Request, what string, took, limit time.Duration) {
	if took > limit+r.Blocked {
		h.broken("every wait is bounded", with(r), "#%d waited %s for %s; the bound is %s", r.Number, ms(took), what, ms(limit))
	}
}

// reasons judges that without faults every refusal has a reason.
func (h *history) reasons() {
	const rule = "without faults a refusal has a reason"
	for i := range h.all {
		r := &h.all[i]
		held := r.End - r.Open + 8*h.Latency + slack
		if r.Leaves > 0 && r.End >= r.Leaves || (r.Cause == Lost || r.Cause == Conflict) && h.endedUnder(r) {
			continue
		}
		switch r.Cause {
		case Timeout:
			from, _ := r.waited()
			if waited := r.End - from; waited < h.LockWait-slack {
				h.broken(rule, with(r), "#%d was told that the wait was over after %s, LockWait is %s", r.Number, ms(waited), ms(h.LockWait))
			}
		case TooMany:
			if n := h.waiting(r); n < h.MaxWaiters {
				h.broken(rule, with(r), "#%d was told that too many wait: %d did, MaxWaiters is %d", r.Number, n, h.MaxWaiters)
			}
		case Lost:
			if h.Exclusion && (held < h.MaxHold || r.Optimistic) {
				h.broken(rule, with(r), "#%d has lost the lock after %s, MaxHold is %s", r.Number, ms(held), ms(h.MaxHold))
			}
		case Conflict:
			if !h.changed(r) {
				h.broken(rule, with(r), "#%d was refused since another had changed its session, which nobody has", r.Number)
			}
		case Unavailable:
			if r.Effect == Renew && r.Seal+2*h.Latency+slack >= h.created(last(r.Saw))+h.Lifetime {
				continue // its session may have ended before Redis can give it another ID
			}
			h.broken(rule, with(r), "#%d was told that Redis is unavailable: %s", r.Number, r.Why)
		case Mistake:
			if !r.Faulty {
				h.broken(rule, with(r), "#%d was answered with %d: %s", r.Number, r.Status, r.Why)
			}
		}
	}
}

// changed reports whether the session that a request has read without the lock may have been changed
// before it was saved.
func (h *history) changed(r *Request) bool {
	for _, x := range h.bySession[r.Cookie] {
		if x.Number != r.Number && x.Effect != Nothing && (x.Outcome != Refused || h.endedUnder(x)) && !x.New &&
			last(x.Saw) == last(r.Saw) && x.Seal > 0 && x.Seal <= r.End {
			return true
		}
	}
	lives := min(r.Asked+h.TTL, h.created(last(r.Saw))+h.Lifetime)
	return r.End > lives-2*time.Millisecond // it may have expired
}

// waiting returns how many requests may have waited for the same session in the same process as r. It does not count
// those whose first run waited, too.
func (h *history) waiting(r *Request) (n int) {
	from, to := r.waited()
	if !r.Optimistic && !r.late() {
		to = from // when it asked
	}
	for i := range h.all {
		x := &h.all[i]
		since, until := x.waited()
		if x != r && !x.Again && x.Process == r.Process && since <= to && until >= from && x.asksWith(r) {
			n++
		}
	}
	return n
}

// stragglers is how many requests may wait in addition to MaxWaiters: the request that acquires the lock, and
// requests whose response is under way. If commits fail, requests that have lost their turn wait again.
func (h *history) stragglers() int {
	if h.Strict {
		return 3
	}
	return 12
}

// ahead returns how many requests of the same process were certainly waiting when r came and had to wait,
// too.
func (h *history) ahead(r *Request) (n int) {
	if r.Cause == TooMany || !r.Exclusive || r.Again || r.late() || r.Cookie == "" {
		return 0
	}
	for _, x := range h.bySession[r.Cookie] {
		if x.Process == r.Process && x.Life == r.Life && x.Exclusive && !x.Again && !x.late() && x.Cookie == r.Cookie && x.Cause != TooMany && x.Asked < r.Asked && x.waits() > r.Asked {
			n++
		}
	}
	return n
}

// waits returns when a request stopped waiting for its session.
func (r *Request) waits() time.Duration {
	if r.Open > 0 {
		return r.Open
	}
	return r.End
}
