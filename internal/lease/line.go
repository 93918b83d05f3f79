package lease

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Lines are the waiting lines of one process, one for each key. They know nothing of Redis.
//
// # The states of a ticket
//
//	       Enter               Next: the owner of the key passes it on
//	new ─────────────▶ waiting ──────────────────────────────────────▶ granted
//	 │                    │ │     Leave: the head, or the owner, has left
//	 │ the key is free    │ └────────────────────────────────────────▶ head
//	 └────────────────────┼──────────────────────────────────────────▶ head
//	                      │       its context, Options.Wait, Dismiss, Close
//	                      └──────────────────────────────────────────▶ refused
//
// The head alone asks Redis for the lock (contest.go). When it has the lock, it is the owner.
//
// Invariant (one head): a key is in keys exactly while one ticket is its head, or its owner.
// Invariant (first come): waiting is in the order in which the tickets came. Next and Leave take the first ticket.
// Invariant (one call): a ticket that waits has got no call. A ticket that was called or refused has got exactly one.
// Invariant (passed on): a caller that became head, or was granted the key, calls Leave or a successful Next exactly
// once.
// Invariant (place): the process's place in Redis's queue belongs to the line. Only the head uses it. It is given up by
// the head that gets the lock, or by the last head.
//
// # Lock order
//
// The mutex of an owner (a tenure of package records, or a Lease) is locked before Lines.mu. No other mutex is locked
// while Lines.mu is held. Neither is held during a round trip, nor while a function of the application is called,
// except the methods of a context that it has made itself.
type Lines[W any] struct {
	Notifiers *Notifiers // of the queue between processes; nil: there is none
	Sweeper   Sweeper

	mu       sync.Mutex // guards all below
	keys     map[string]*line[W]
	contests int // how many have begun: the number of the last one
	closed   error
	waits    alarms // when tickets have waited for long enough
	renewals alarms // when owners must renew their locks
}

// A line is the waiting line of one key.
type line[W any] struct {
	waiting []*Ticket[W]
	head    *Ticket[W] // nil: the key has an owner
	contest int        // the number of the last contest for the key
	holder  Holder
	place   *place // in Redis's queue; nil: it has none
}

// Enter waits in line. Then the ticket was granted the key or, if head is true, is the head, and its caller must call
// Compete. After an error nothing is left to undo.
func (l *Lines[W]) Enter(t *Ticket[W]) (head bool, err error) {
	again := !t.came.IsZero()
	if !again {
		t.lines, t.came = l, time.Now()
	}
	if t.Key == "" || len(t.Key) > MaxKey {
		return false, fmt.Errorf("the key has %d bytes: it must have 1 to %d", len(t.Key), MaxKey)
	}
	if err := context.Cause(t.Context); err != nil {
		return false, t.waitError(err)
	}
	if again && t.remains() <= 0 {
		return false, t.waitError(t.timeout())
	}
	if t.Options.Policy == LeaseEnd {
		if h := l.holder(t.Key); h.left() > t.patience() {
			return false, t.waitError(held(ErrTimeout, h))
		}
	}
	head, err = l.join(t, again)
	switch {
	case err == ErrTooManyWaiters:
		err = held(err, l.holder(t.Key))
	case err == nil && !head:
		head, err = t.wait()
	}
	if err != nil {
		return false, t.waitError(err)
	}
	return head, nil
}

// join makes a ticket the head of its key or, if there is a head or an owner already, puts it into the line: behind those
// that came before it.
func (l *Lines[W]) join(t *Ticket[W], again bool) (head bool, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.keys[t.Key]
	if at != nil && !again {
		at.show(t)
	}
	switch {
	case l.closed != nil:
		return false, l.closed
	case at == nil:
		if l.keys == nil {
			l.keys = make(map[string]*line[W])
		}
		t.line = &line[W]{}
		l.keys[t.Key] = t.line
		l.begin(t.line, t)
		return true, nil
	case len(at.waiting) >= t.Options.MaxWaiters && !again:
		return false, ErrTooManyWaiters
	}
	if t.called == nil {
		t.called = make(chan outcome, 1) // has room, so that the goroutine that calls does not wait
	}
	i := len(at.waiting)
	for i > 0 && t.came.Before(at.waiting[i-1].came) {
		i--
	}
	at.waiting, t.line = slices.Insert(at.waiting, i, t), at
	end := t.came.Add(t.Options.Wait)
	l.waits.set(&l.mu, &t.alarm, t, end, end.Add(maxSlack))
	return false, nil
}

// remove takes a ticket out of the line. It returns false if the ticket was called, or is about to be.
func (l *Lines[W]) remove(t *Ticket[W]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(t.line.waiting, t)
	if i < 0 {
		return false
	}
	t.line.waiting = slices.Delete(t.line.waiting, i, i+1)
	t.alarm.cancel()
	return true
}

// pop removes and returns the first ticket.
func (at *line[W]) pop() *Ticket[W] {
	t := at.waiting[0]
	at.waiting = slices.Delete(at.waiting, 0, 1)
	t.alarm.cancel()
	return t
}

// Anyone as since lets Next take the first ticket, whenever it came.
var Anyone = time.Unix(1<<40, 0)

// First returns the first ticket in line. By the time of Next, the ticket may have left.
func (l *Lines[W]) First(key string) (t *Ticket[W], waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.keys[key]; at != nil && len(at.waiting) > 0 {
		return at.waiting[0], true
	}
	return nil, false
}

// Next takes the first ticket out of the line and grants it the key. The caller no longer owns the key. grant prepares
// the ticket's Who, and is called before the ticket's goroutine continues. Next does nothing and returns false if the
// line is empty, if the first ticket came after since, or if its label is not the one that the lock's token shows to
// other processes.
func (l *Lines[W]) Next(key, label string, since time.Time, grant func(W)) bool {
	l.mu.Lock()
	at := l.keys[key]
	if at == nil || len(at.waiting) == 0 || at.waiting[0].Label != label || at.waiting[0].came.After(since) {
		l.mu.Unlock()
		return false
	}
	t := at.pop()
	at.holder = Holder{granted: time.Now(), label: t.Label}
	l.mu.Unlock()
	grant(t.Who)
	t.called <- outcome{}
	return true
}

// Own notes that the head of a key, or the ticket that was granted the key, owns it now, as holder. The alarm rings at
// due, or a little later, but not after latest.
func (l *Lines[W]) Own(key string, holder Holder, a *Alarm, r Ringer, due, latest time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.keys[key]; at != nil {
		at.head, at.holder = nil, holder
	}
	l.renewals.set(&l.mu, a, r, due, latest)
}

// SetAlarm sets an owner's alarm anew.
func (l *Lines[W]) SetAlarm(a *Alarm, r Ringer, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewals.set(&l.mu, a, r, due, due)
}

// CancelAlarm cancels an owner's alarm.
func (l *Lines[W]) CancelAlarm(a *Alarm) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.cancel()
}

// Leave is called once, by an owner that does not pass its key on, or by a head that has not got the lock. The caller's
// alarm is cancelled. The first ticket in line becomes the head. If the line is empty, Leave returns the place of the
// process, which the head must quit.
func (l *Lines[W]) Leave(key string, a *Alarm) (left *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.cancel()
	at := l.keys[key]
	if len(at.waiting) == 0 {
		delete(l.keys, key)
		return at.place
	}
	at.holder = Holder{} // the next head may find another
	l.begin(at, at.waiting[0])
	at.pop().called <- outcome{head: true}
	return nil
}

// begin begins the contest of a new head.
func (l *Lines[W]) begin(at *line[W], head *Ticket[W]) {
	l.contests++
	at.head, at.contest = head, l.contests
}

// Dismiss refuses all tickets that wait for a key now. The head, or the owner, stays.
func (l *Lines[W]) Dismiss(key string, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.keys[key]; at != nil {
		at.dismiss(why)
	}
}

func (at *line[W]) dismiss(why error) {
	for _, t := range at.waiting {
		t.alarm.cancel()
		t.called <- outcome{err: why}
	}
	at.waiting = nil
}

// Close refuses all tickets that wait, and all later tickets, with why. It ends the sweeps and the Notifiers: a lock
// that was not swept yet expires with its lease. It does not touch owners.
func (l *Lines[W]) Close(why error) {
	if l.Notifiers != nil {
		defer l.Notifiers.shutDown()
	}
	l.Sweeper.closed.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = why
	for _, at := range l.keys {
		at.dismiss(why)
	}
}

// isClosed returns the error of Close, or nil.
func (l *Lines[W]) isClosed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// holder returns the last known holder of the lock of a key.
func (l *Lines[W]) holder(key string) Holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.keys[key]; at != nil {
		return at.holder
	}
	return Holder{}
}
