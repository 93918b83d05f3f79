package lease

import (
	"sync"
	"time"
)

// A lease lasts for milliseconds, and its timer for seconds. So does the wait of a ticket. Nearly all of these
// timers are stopped before they fire. So one timer serves all of them, and is rarely set: when it fires, it looks for
// what is due by then.

// An Alarm is when something is to be done. The zero value is not set. Lines.mu guards it.
type Alarm struct {
	ringer     Ringer
	in         *alarms // nil: it is not among them
	prev, next *Alarm
	due        time.Time
	timer      *time.Timer // of its own, if it has needed one
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

// set makes x ring at due or, so that it can share the timer, later by a sixteenth of the time until then, but not
// after latest. mu guards the alarms, and is held.
func (a *alarms) set(mu *sync.Mutex, x *Alarm, r Ringer, due, latest time.Time) {
	x.cancel()
	x.ringer = r
	if a.last != nil && due.Before(a.last.due) {
		wait := time.Until(due)
		if a.last.due.After(latest) || a.last.due.Sub(due) > min(wait/16, maxSlack) { // x does not belong at the end
			if x.timer == nil {
				x.timer = time.AfterFunc(wait, x.ringer.Ring)
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

// cancel takes the alarm back, if it is set. The shared timer stays as it is.
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

// ringDue is what the timer calls: it rings the alarms that are due, and sets the timer for the others.
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
