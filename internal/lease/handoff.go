package lease

import "time"

// A lock that callers of this process wait for need not become free. Its lease is stopped,
// and then the lock is handed over to the next of them, with a round trip that gives Redis
// its token, or without one.

// How long one process may hand a lock over among its own callers: long enough that a change of
// processes, some round trips and a message, does not count; short enough that others do not notice.
const (
	maxHandoffs = 32
	maxTime     = 10 * time.Millisecond
	// Others that are in no queue may wait all the same: programs that poll, or earlier
	// versions of this one. Now and then they have their chance, too.
	maxTimeAlone = time.Second
)

// A quota is how much of that is used up.
type quota struct {
	began    time.Time
	handoffs int
	others   bool // wait for the lock, as of the last round trip
}

// over reports whether the lock is to be freed although callers of this process wait.
func (q quota) over(now time.Time) bool {
	if q.others {
		return q.handoffs >= maxHandoffs || now.Sub(q.began) >= maxTime
	}
	return now.Sub(q.began) >= maxTimeAlone
}

// A Next is the caller that gets the lock next. The zero value is nobody: the lock is to be freed.
type Next struct {
	Token string        // by which it gets the lock
	Span  time.Duration // for which it gets it
	// Fresh: more than two thirds of the lease are left. Otherwise it is time for a round trip.
	Fresh bool
	Began time.Time // when it came
	label string    // its own, which is in the token
	sent  time.Time
}

// Stop ends the lease, which is not renewed any more, and returns the next caller of this
// process, if one waits and the process may keep the lock. The lock is then to be handed over, by
// HandOver or by a round trip and Give, or freed, and Leave to be called in any case. others
// reports whether other processes wait, as far as is known; held, whether l had the lock until
// now, if not see Why; ended, whether it was given back before.
func (l *Lease) Stop(others bool) (next Next, held, ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	held, ended = l.state == holding && now.Before(l.end), l.state == released
	if l.state == holding && !held {
		l.trouble = &trouble{err: l.overdue(now)}
	}
	l.state = released
	l.stopTimer()
	if ended || !l.turn {
		return next, held, ended
	}
	q, first := l.quota, l.group.release(l)
	q.others = others
	if first == nil || q.over(now) {
		return next, held, ended
	}
	fresh := l.end.Sub(now) >= min(l.options.Lease, l.limit.Sub(now))*2/3
	return Next{newToken(BondIn(l.token), first.label, now), first.span, fresh, first.began, first.label, now}, held, ended
}

// HandOver gives the lock to the next caller without a round trip, and returns its lease. That is nil
// if none waits any more, or if the one who is first now has another label: the token would name the
// wrong one to those who wait. Redis still knows an earlier token, which is for HandOver's caller to
// bring up to date.
func (l *Lease) HandOver(next Next, others bool) *Lease { return l.give(next, others, l.end) }

// Give is HandOver where Redis has given the lock to next. If it returns nil, the lock has to be freed.
func (l *Lease) Give(next Next, others bool) *Lease {
	return l.give(next, others, l.validUntil(next.sent, next.Span))
}

func (l *Lease) give(next Next, others bool, end time.Time) *Lease {
	w := l.group.next(l.key, next.label)
	if w != nil {
		l.hand(w, next, others, end)
	}
	return w
}

// hand makes a caller the holder, until end, and gives it the turn.
func (l *Lease) hand(w *Lease, next Next, others bool, end time.Time) {
	l.mu.Lock()
	l.turn = false
	l.mu.Unlock()
	if limit := next.sent.Add(w.options.MaxHold); limit.Before(end) {
		end = limit // it may hold it for a shorter time than the one before
	}
	w.token, w.data, w.handed = next.Token, l.data, true
	w.quota = quota{began: l.quota.began, handoffs: l.quota.handoffs + 1, others: others}
	w.begin(next.sent, end)
	w.called <- nil
}

// Leave gives the turn to the next caller, unless l has done so before, or handed it the lock.
func (l *Lease) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn {
		l.turn = false
		l.group.leave(l)
	}
}
