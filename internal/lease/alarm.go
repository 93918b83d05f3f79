package lease

import (
	"sync"
	"time"
)

// A lock is held for milliseconds, but its lease lasts for seconds, and so may a ticket's wait. So nearly all of their
// alarms are cancelled before they ring. One timer serves all alarms, and is rarely set: when it fires, it rings the
// alarms that are due by then.

// An Alarm calls its Ringer at a time. The zero value is not set. Lines.mu guards it.
type Alarm struct {
	ringer     Ringer
	in         *alarms // nil: the alarm is not among them
	prev, next *Alarm
	due        time.Time
	timer      *time.Timer // its own timer, if it has needed one
}

// A Ringer is what an alarm calls, in a goroutine of its own. The call may come late: after the alarm was cancelled,
// or set anew.
type Ringer interface{ Ring() }

// alarms are ordered by time. A new alarm is only added at the end: it belongs there if each alarm is set for the
// same time ahead. Lines.mu guards them.
type alarms struct {
	first, last *Alarm
	timer       *time.Timer // nil until it is needed
	at          time.Time   // when the timer fires: not after the first alarm is due; zero: the timer is not set
}

// maxSlack is how much later an alarm may ring at most.
const maxSlack = 10 * time.Millisecond

// set makes x ring at due. So that x can share the timer, it may ring later by a sixteenth of the time until due, but
// not after latest. mu guards the alarms, and is held.
func (a *alarms) set(mu *sync.Mutex, x *Alarm, r Ringer, due, latest time.Time) {
	x.cancel()
	x.ringer = r
	if a.last != nil && due.Before(a.last.due) {
		wait := time.Until(due)
		if a.last.due.After(latest) || a.last.due.Sub(due) > min(wait/16, maxSlack) { // x does not belong at the end
			if x.timer == nil {
				x.timer = time.AfterFunc(wait, r.Ring) // each alarm has one Ringer
			} else {
				x.timer.Reset(wait)
			}
			return
		}
		due = a.last.due
	}
	x.in, x.prev, x.due = a, a.last, due
	if a.last == nil {
		a.first = x
	} else {
		a.last.next = x
	}
	a.last = x
	if a.at.IsZero() || due.Before(a.at) {
		a.setTimer(mu, due)
	}
}

func (a *alarms) setTimer(mu *sync.Mutex, at time.Time) {
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(at), func() { a.ringDue(mu) })
	} else {
		a.timer.Reset(time.Until(at))
	}
}

// cancel cancels the alarm, if it is set. The shared timer stays as it is.
func (x *Alarm) cancel() {
	if x.timer != nil {
		x.timer.Stop()
	}
	a := x.in
	if a == nil {
		return
	}
	if x.prev == nil {
		a.first = x.next
	} else {
		x.prev.next = x.next
	}
	if x.next == nil {
		a.last = x.prev
	} else {
		x.next.prev = x.prev
	}
	x.in, x.prev, x.next = nil, nil, nil
}

// ringDue is called by the timer. It rings the alarms that are due, and sets the timer for the others.
func (a *alarms) ringDue(mu *sync.Mutex) {
	mu.Lock()
	defer mu.Unlock()
	now := time.Now()
	for x := a.first; x != nil; x = a.first {
		if x.due.After(now) {
			a.setTimer(mu, x.due)
			return
		}
		x.cancel()
		go x.ringer.Ring()
	}
	a.at = time.Time{}
}
