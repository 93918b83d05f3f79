package lease

import (
	"sync"
	"time"
)

// A lease lasts for milliseconds, and its timer for seconds; so does the wait of a ticket. Nearly
// all of these timers are stopped before they fire. So there is one for all, which is rarely set:
// when it fires, it looks for what is due by then.

// An Alarm is when something is to be done. The zero value is not set. Lines.mu guards it.
type Alarm struct {
	ringer     Ringer
	in         *alarms // nil: it is not among them
	prev, next *Alarm
	due        time.Time
	timer      *time.Timer // of its own, if it has needed one
}

// A Ringer is what an alarm calls, in a goroutine of its own. That may come late: after the alarm was
// cancelled, or set anew.
type Ringer interface{ Ring() }

// alarms are ordered by time: one is added only at the end. That is where it belongs if each is set for
// the same time ahead. Lines.mu guards them.
type alarms struct {
	first, last *Alarm
	timer       *time.Timer // nil until it is needed
	at          time.Time   // when it fires: not after the first is due; zero: it is not set
}

// set makes x ring at due, or later by slack at the most. mu guards the alarms, and is held.
func (a *alarms) set(mu *sync.Mutex, x *Alarm, r Ringer, due time.Time, slack time.Duration) {
	x.cancel()
	x.ringer = r
	if a.last != nil && due.Before(a.last.due) {
		if due.Add(slack).Before(a.last.due) { // it does not belong at the end
			x.setTimer(time.Until(due))
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

func (x *Alarm) setTimer(d time.Duration) {
	if x.timer == nil {
		x.timer = time.AfterFunc(d, x.ringer.Ring)
	} else {
		x.timer.Reset(d)
	}
}

func (a *alarms) setTimer(mu *sync.Mutex, at time.Time) {
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(at), func() { a.ring(mu) })
	} else {
		a.timer.Reset(time.Until(at))
	}
}

// cancel takes back the alarm, if it is set. The shared timer stays as it is.
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

// ring is what the timer calls: it rings those that are due, and sets the timer for the others.
func (a *alarms) ring(mu *sync.Mutex) {
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

// slack is how much later an alarm may be than in d.
func slack(d time.Duration) time.Duration { return min(d/16, 10*time.Millisecond) }
