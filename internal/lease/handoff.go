package lease

import "time"

// A lock that callers of this process wait for need not become free: it is handed over to
// the next of them, with an exchange that gives Redis its token (Stop, then Give), or
// without one (HandOver). Their leases are made before they wait, so that a handoff only
// fills in what the lock is held by.

// How long one process may hand a lock over among its own callers before others have their
// turn. Long enough that a change of processes, which costs some exchanges and a message,
// does not count; short enough that the others do not notice.
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
	others   bool // wait for the lock, as of the last exchange
}

// over reports whether the lock is to be freed although callers of this process wait.
func (q quota) over(now time.Time) bool {
	if q.others {
		return q.handoffs >= maxHandoffs || now.Sub(q.began) >= maxTime
	}
	return now.Sub(q.began) >= maxTimeAlone
}

// after returns the quota after one handoff more.
func (q quota) after(others bool) quota {
	return quota{began: q.began, handoffs: q.handoffs + 1, others: others}
}

// HandOver gives the lock to the caller of this process that has waited longest, at once
// and without an exchange, and returns its lease. It returns nil, and changes nothing, where
// nobody waits, where other processes are to have their turn, or where l does not hold the
// lock any more. others reports whether other processes wait, as far as is known.
//
// Redis still knows the token of l, or an earlier one. It is for the caller to know that,
// and to bring it up to date.
func (l *Lease) HandOver(others bool) *Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quota.others = others
	now := time.Now()
	if l.state != holding || !now.Before(l.end) || l.quota.over(now) {
		return nil
	}
	w := l.group.next(l.key)
	if w == nil {
		return nil
	}
	l.state, l.turn = released, false
	l.timer.Stop()
	l.give(w, newToken(w.lease.options.Label, now), others, now, l.end)
	return w.lease
}

// A Successor is who gets the lock next. The zero value is nobody: it is to be freed.
type Successor struct {
	Token string
	Span  time.Duration // for which it gets the lock
	sent  time.Time
}

// Stop ends the lease: it is not renewed any more. It returns the next caller of this
// process, if there is one and free is not set, and the process may keep the lock. It is for
// the caller to give the lock to that one in Redis, and to call Give, or to free it. Leave
// must be called in the end, whatever came of it. ok is false where the lease has been given
// back before.
func (l *Lease) Stop(free bool) (next Successor, ok bool) {
	if l.letGo(0) == released {
		return Successor{}, false
	}
	return l.successor(!free), true
}

// letGo stops the renewal, and returns the state that ends here. An extension that is on
// its way finds no token after a release. But it would replace a cool-down, so that has to
// come after it.
func (l *Lease) letGo(after time.Duration) state {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.state
	l.state = released
	l.timer.Stop()
	for was != released && after > 0 && l.extending {
		l.extended.Wait()
	}
	return was
}

// successor returns who is to have the lock after l, which has been let go.
func (l *Lease) successor(may bool) Successor {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !may || !l.turn || l.quota.over(now) {
		return Successor{}
	}
	first := l.group.first(l.key)
	if first == nil {
		return Successor{}
	}
	return Successor{newToken(first.options.Label, now), first.options.span(), now}
}

// Give gives the lock that Redis has given to s to the next caller, and returns its lease,
// nil if none waits any more: then the lock has to be freed.
func (l *Lease) Give(s Successor, others bool) *Lease {
	w := l.group.next(l.key)
	if w == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn = false
	l.give(w, s.Token, others, s.sent, s.sent.Add(l.algorithm.Valid(s.Span)))
	return w.lease
}

// give makes a caller the holder, by token and until end, and gives it the turn. It is
// called with mu held.
func (l *Lease) give(w *caller, token string, others bool, now, end time.Time) {
	next := w.lease
	if limit := now.Add(next.options.MaxHold); limit.Before(end) {
		end = limit // it may hold it for a shorter time than the one before
	}
	next.token, next.data, next.handed, next.quota = token, l.data, true, l.quota.after(others)
	next.begin(now, end)
	w.turn <- nil
}

// Leave gives the turn to the next caller, without the lock, unless l has done so before or
// has given it the lock.
func (l *Lease) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave()
}

// leave is called with mu held. A process that has the lock has no place in the queue.
func (l *Lease) leave() {
	if l.turn {
		l.turn = false
		_ = l.group.leave(l.key, nil)
	}
}

// yieldTurn leaves the turn to the caller, if l still has it.
func (l *Lease) yieldTurn() (had bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	had, l.turn = l.turn, false
	return had
}
