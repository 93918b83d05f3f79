package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
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
// while Lines.mu is held. Neither is held during a round trip, nor while a function of the application is called.
type Lines[W any] struct {
	Notifiers *Notifiers // of the queue between processes; nil: there is none
	Sweeper   Sweeper

	mu       sync.Mutex // guards all below
	keys     map[string]*line[W]
	closed   error
	waits    alarms // when tickets have waited for long enough
	renewals alarms // when owners must renew their locks
}

// A line is the waiting line of one key.
type line[W any] struct {
	waiting []*Ticket[W]
	head    *Ticket[W] // nil: the key has an owner
	holder  Holder
	place   *place // in Redis's queue; nil: it has none
}

// A Holder is the last known holder of a lock. The zero value means that none is known.
type Holder struct {
	Token string
	Lease *Lease // if this process holds it

	granted time.Time // when the lock was granted to a ticket of this process, whose token is not known; or zero
	label   string    // of that ticket
	ends    time.Time // when the lease ends, if another process holds it
}

// left returns how long the holder's lease still lasts. It must not be called with Lines.mu held, since it locks the
// owner's mutex.
func (h Holder) left() time.Duration {
	if h.Lease != nil {
		return h.Lease.Validity()
	}
	return time.Until(h.ends)
}

// A Ticket is one caller in line. If it could not use what it was granted, it may enter again: then it has its old
// place in line, and the rest of its time.
type Ticket[W any] struct {
	Who     W // the caller; an owner prepares it before it grants the key
	Key     string
	Label   string
	Options *Options // by WithDefaults; shared by many, and not changed
	Context context.Context
	Found   *Found // for observers; nil: nobody wants to know. See fill

	lines  *Lines[W]
	line   *line[W] // since the last Enter
	came   time.Time
	called chan outcome
	alarm  Alarm
}

// A Found is what a ticket has found when it came.
type Found struct {
	Ahead  int    // how many tickets stood before it in line
	token  string // of the holder; empty if there is none, or its token is not known
	label  string // of the holder if only its label is known, otherwise of the head; empty if there is neither
	filled bool
}

// Behind returns the label of the holder, and its process if that is another one. If no holder is known, it returns the
// label of the head, which was acquiring the lock.
func (f *Found) Behind() (label, process string) {
	if owner, known := ParseToken(f.token); known {
		return owner.Label, Elsewhere(owner)
	}
	return excerpt.Printable(f.label, maxLabel), ""
}

// fill fills in what was found: by the first Enter, or else by the first try that finds the lock held. It does nothing if
// nobody wants to know, or if it was filled in before.
func (f *Found) fill(ahead int, h Holder, head string) {
	switch {
	case f == nil || f.filled:
	case !h.granted.IsZero(): // by this process: its token is not known yet
		*f = Found{ahead, "", h.label, true}
	default:
		*f = Found{ahead, h.Token, head, true}
	}
}

// show shows a ticket how things stand with its key.
func (at *line[W]) show(t *Ticket[W]) {
	ahead, head := len(at.waiting), ""
	if at.head != nil {
		ahead++
		head = at.head.Label
	}
	t.Found.fill(ahead, at.holder, head)
}

// An outcome ends a wait. If it is zero, the ticket was granted the key.
type outcome struct {
	head bool
	late bool // the ticket has waited for Options.Wait
	err  error
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
	l.mu.Lock()
	at := l.keys[t.Key]
	if t.Found != nil && at != nil && !again {
		at.show(t)
	}
	switch {
	case l.closed != nil:
		err = l.closed
	case at == nil:
		if l.keys == nil {
			l.keys = make(map[string]*line[W])
		}
		t.line = &line[W]{head: t}
		l.keys[t.Key] = t.line
		head = true
	case len(at.waiting) >= t.Options.MaxWaiters && !again:
		err = held(ErrTooManyWaiters, at.holder)
	default:
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
	}
	l.mu.Unlock()
	if err == nil && !head {
		head, err = t.wait()
	}
	if err != nil {
		return false, t.waitError(err)
	}
	return head, nil
}

// wait returns when the ticket was called, or has left the line by itself.
func (t *Ticket[W]) wait() (head bool, err error) {
	select {
	case c := <-t.called:
		if c.late {
			c.err = cmp.Or(t.ended(), t.timeout())
		}
		return c.head, c.err
	case <-t.Context.Done():
	}
	err = t.ended()
	if t.lines.remove(t) {
		return false, err
	}
	// The call came at the same moment. If the key was granted, the caller has it, and finds that its context has
	// ended. A ticket that became the head leaves.
	c := <-t.called
	switch {
	case c.head:
		t.lines.Leave(t.Key, &t.alarm).quit(0)
		return false, err
	case c.err != nil || c.late:
		return false, err
	}
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

// Ring is called by the alarm. It ends the wait of a ticket that has waited for Options.Wait, unless the ticket was
// called.
func (t *Ticket[W]) Ring() {
	if t.lines.remove(t) {
		t.called <- outcome{late: true}
	}
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
	at.head = at.waiting[0]
	at.pop().called <- outcome{head: true}
	return nil
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

// ended returns why the wait of a ticket has ended, or nil. A context with a deadline would tell the same, but costs
// each wait 0.7 µs and 4 allocations.
func (t *Ticket[W]) ended() error {
	if cause := context.Cause(t.Context); cause != nil {
		return cause
	}
	if closed := t.lines.isClosed(); closed != nil {
		return closed
	}
	if t.remains() <= 0 {
		return t.timeout()
	}
	return nil
}

// timeout returns an ErrTimeout, with the holder if one is known.
func (t *Ticket[W]) timeout() error {
	return held(ErrTimeout, t.lines.holder(t.Key))
}

// remains returns the rest of Options.Wait.
func (t *Ticket[W]) remains() time.Duration { return time.Until(t.came.Add(t.Options.Wait)) }

// patience returns remains, or less if the caller's context ends sooner.
func (t *Ticket[W]) patience() time.Duration {
	left := t.remains()
	if end, ok := t.Context.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	return left
}

// waitError returns the error of a wait that err has ended.
func (t *Ticket[W]) waitError(err error) error {
	if closed := t.lines.isClosed(); closed != nil && errors.Is(err, ErrUnavailable) {
		err = closed // closed is the cause, whatever error the client returns
	}
	return fmt.Errorf("waited %v for %s: %w", time.Since(t.came).Round(time.Millisecond), excerpt.Of(t.Key), err)
}
