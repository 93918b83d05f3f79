package lease

import "time"

// A lease lasts for milliseconds, and its timer for seconds; so does the wait of a caller. Nearly
// all of these timers are stopped before they fire. So there is one for all, which is rarely set:
// when it fires, it looks for what is due by then.

// An alarm is when something is to be done with a lease. Group.mu guards it.
type alarm struct {
	in         *alarms // nil: none
	prev, next *Lease
	due        time.Time
}

// alarms are those of many leases, ordered by time: one is added only at the end. That is where
// it belongs if each is set for the same time ahead. Group.mu guards them.
type alarms struct {
	first, last *Lease
	ring        func()      // what the timer calls
	timer       *time.Timer // nil until it is needed
	at          time.Time   // when it fires: not after the first is due; zero: it is not set
}

// add sets an alarm if it belongs at the end, give or take slack.
func (a *alarms) add(l *Lease, due time.Time, slack time.Duration) (added bool) {
	if a.last != nil && due.Before(a.last.alarm.due) {
		if due.Add(slack).Before(a.last.alarm.due) {
			return false
		}
		due = a.last.alarm.due
	}
	l.alarm = alarm{in: a, prev: a.last, due: due}
	if a.last == nil {
		a.first = l
	} else {
		a.last.alarm.next = l
	}
	a.last = l
	if a.at.IsZero() || due.Before(a.at) {
		a.set(due)
	}
	return true
}

func (a *alarms) set(at time.Time) {
	if a.at = at; a.timer == nil {
		a.timer = time.AfterFunc(time.Until(at), a.ring)
	} else {
		a.timer.Reset(time.Until(at))
	}
}

// cancel takes back the alarm, if there is one. The timer stays as it is.
func (x *alarm) cancel() {
	a := x.in
	if a == nil {
		return
	}
	if x.prev == nil {
		a.first = x.next
	} else {
		x.prev.alarm.next = x.next
	}
	if x.next == nil {
		a.last = x.prev
	} else {
		x.next.alarm.prev = x.prev
	}
	*x = alarm{}
}

// ringing sets the timer for those that are not due yet, and returns the next one that is.
func (a *alarms) ringing(now time.Time) *Lease {
	l := a.first
	switch {
	case l == nil:
		a.at = time.Time{}
	case l.alarm.due.After(now):
		a.set(l.alarm.due)
	default:
		l.alarm.cancel()
		return l
	}
	return nil
}

// slack is how much later an alarm may be than in d.
func slack(d time.Duration) time.Duration { return min(d/16, 10*time.Millisecond) }

// renewDue is what the timer of the leases calls.
func (g *Group) renewDue() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for now := time.Now(); ; {
		l := g.held.ringing(now)
		if l == nil {
			return
		}
		go l.renew() // a round trip, which Timeout bounds
	}
}

// endWaits is what the timer of the callers that wait calls.
func (g *Group) endWaits() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for now := time.Now(); ; {
		l := g.waits.ringing(now)
		if l == nil {
			return
		}
		g.endWait(l)
	}
}

// endWait ends the wait of a caller whose time is over, unless its turn is coming. It is called
// with mu held.
func (g *Group) endWait(l *Lease) {
	if c := g.keys[l.key]; c != nil && c.remove(l) {
		l.called <- errOver
	}
}
