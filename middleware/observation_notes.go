package middleware

import (
	"runtime/trace"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// notes are what an observation has noted. Their memory goes from request to request: new memory for each would cost
// more time than everything else here. A goroutine that outlives its request must not find notes that another request
// uses. It finds only the observation, which is done.
//
// An observation takes its notes with the first note. Nearly always, that is when the wait for the session is over. So
// requests that wait have no notes. A few notes serve all requests, and stay in the processor's caches.
type notes struct {
	kept      []Event
	keeping   bool      // events are kept
	wasOpen   bool      // the request has opened a stored session
	heldSince time.Time // since when the request holds its session; zero: it does not
	holdTask  *trace.Task
	tripsThen int       // event.RoundTrips when the request acquired the lock
	stored    time.Time // when the reply to a commit came, if that was the last exchange of this hold
	event     RequestEvent

	// Room, so that nearly all requests need no further memory.
	few       [4]Event
	one       [1]Hold
	exchanges [2]ExchangeEvent // the first of kept
	exchanged int              // how many of these are in use
}

// A handler may do any number of things before its request's event is told. These constants bound the memory for
// them.
const (
	maxHolds = 64   // of the request's event
	maxKept  = 1024 // events
)

var usedNotes = sync.Pool{New: func() any { return new(notes) }}

// newNotes returns empty notes of a request that arrived then, in used memory if there is some.
func newNotes(arrived time.Time) *notes {
	n := usedNotes.Get().(*notes)
	n.event.Arrived, n.keeping = arrived, true
	n.kept, n.event.Holds = n.few[:0], n.one[:0]
	return n
}

// free lets another request use the memory of the notes.
func (n *notes) free() {
	*n = notes{}
	usedNotes.Put(n)
}

// exchange returns the event of an exchange, in the memory of the notes if there is room.
func (n *notes) exchange(x records.Exchange) *ExchangeEvent {
	if n.exchanged == len(n.exchanges) {
		e := ExchangeEvent(x)
		return &e
	}
	e := &n.exchanges[n.exchanged]
	n.exchanged++
	*e = ExchangeEvent(x)
	return e
}

// takeKept returns copies of the events that were kept, and keeps no more. The notes may be another request's before all copies
// are told.
func (n *notes) takeKept() []Event {
	taken := make([]Event, len(n.kept))
	for i, e := range n.kept {
		taken[i] = e.Clone()
	}
	n.few, n.exchanges, n.exchanged = [len(n.few)]Event{}, [len(n.exchanges)]ExchangeEvent{}, 0 // a stream would keep them for hours
	n.kept, n.keeping = n.few[:0], false
	return taken
}

// now is time.Now, in half the time: it reads the monotonic clock alone.
func (n *notes) now() time.Time { return n.event.Arrived.Add(time.Since(n.event.Arrived)) }

// at is t by the wall clock at the arrival. So the times of an event are in order, also when they are written down, which
// leaves the monotonic clock out. time.Now reads the two clocks one after the other.
func (n *notes) at(t time.Time) time.Time { return n.event.Arrived.Add(t.Sub(n.event.Arrived)) }

// updates notes that this observation is of an Update, and the ID of its session.
func (o *observation) updates(id string) {
	if n := o.lock(); n != nil {
		n.event.Session = id
		o.mu.Unlock()
	}
}

// waited notes that the request, by its label, has waited for the lock, and what it has found. inVain is why the lock was
// not acquired, or nil.
func (o *observation) waited(label string, d time.Duration, found records.Wait, inVain error, now time.Time) {
	n := o.lock()
	if n == nil {
		return
	}
	e := &n.event
	now = n.at(now)
	h := Hold{Asked: now.Add(-d), Queue: found.Ahead, Behind: found.Behind, BehindProcess: found.Process}
	if len(e.Holds) == 0 {
		e.Queue, e.Behind, e.BehindProcess = h.Queue, h.Behind, h.BehindProcess
	}
	e.Label, e.Waited, e.Passed = label, e.Waited+d, e.Passed || found.Passed
	if found.Bytes > 0 {
		e.Bytes = found.Bytes
	}
	n.stored = time.Time{} // by an earlier hold
	if inVain == nil {
		h.Acquired, n.tripsThen = now, e.RoundTrips
		o.holds(n, now)
	} else {
		h.Released, h.Kind = now, ruleOf(inVain).kind
	}
	if all := e.Holds; len(all) == maxHolds {
		all[maxHolds-1] = h
	} else {
		e.Holds = append(all, h)
	}
	o.mu.Unlock()
}

// holdsOn notes that the second run of a handler goes on with the lock that the first run has acquired.
func (o *observation) holdsOn() {
	n := o.lock()
	if n == nil {
		return
	}
	defer o.mu.Unlock()
	h := n.event.Holds[len(n.event.Holds)-1]
	n.event.Held -= h.Released.Sub(h.Acquired) // the end of the first run was noted as a release
	o.holds(n, h.Acquired)
}

// holds is called with mu held.
func (o *observation) holds(n *notes, since time.Time) {
	n.heldSince = since
	if o.task != nil { // a task, since another goroutine may end it, which a region does not allow
		_, n.holdTask = trace.NewTask(o.Context, "latchkey hold")
	}
}

// opened notes that the session is open. If from is none, nothing is stored yet.
func (o *observation) opened(from origin) {
	n := o.lock()
	if n == nil {
		return
	}
	defer o.mu.Unlock()
	n.keeping = true
	if n.event.Outcome == "failed" { // another try, such as a Reopen, has succeeded
		n.event.Outcome = ""
	}
	if from == none {
		return
	}
	n.wasOpen = true
	if !n.event.Acquired.IsZero() {
		return
	}
	n.event.Acquired = n.heldSince
	if n.heldSince.IsZero() || n.event.RoundTrips > n.tripsThen { // it has no lock, or an exchange came after that, such as a claim
		n.event.Acquired = n.now()
	}
}

// outcomes are those of the actions of a commit.
var outcomes = [...]string{leave: "unchanged", touch: "touched", save: "saved", create: "began", renew: "renewed", destroy: "ended", forget: "ended", saveUnlocked: "saved"}

// committed notes a commit that was tried, and whether the request still holds its session. It is called with request.mu
// held.
func (o *observation) committed(do action, err error, holds bool) {
	n := o.lock()
	if n == nil {
		return
	}
	if err == nil { // otherwise it is told by failed, or the handler runs again
		if n.stored.IsZero() { // another request's commit has stored the changes, or there was no hold
			n.stored = n.now()
		}
		n.event.Committed, n.event.Outcome = n.stored, outcomes[do]
	}
	n.stored = time.Time{}
	if !holds {
		n.released()
	}
	o.mu.Unlock()
}

// did notes what the request has done to its session's ID.
func (o *observation) did(e idEvent) {
	n := o.lock()
	if n == nil {
		return
	}
	defer o.mu.Unlock()
	r := &n.event
	r.Began = r.Began || e.do == create
	r.Renewed = r.Renewed || e.do == renew
	r.LoggedIn = r.LoggedIn || e.how == "login"
	r.Ended = r.Ended || e.how == "destroy"
}

// abandoned notes that the handler has panicked before its commit.
func (o *observation) abandoned() {
	n := o.lock()
	if n == nil {
		return
	}
	defer o.mu.Unlock()
	if n.event.Outcome != "failed" {
		n.event.Outcome = "abandoned"
	}
}

// released notes that the request does not hold its session any more.
func (o *observation) released() {
	if n := o.lock(); n != nil {
		n.released()
		o.mu.Unlock()
	}
}

func (n *notes) released() {
	if !n.heldSince.IsZero() {
		end := n.event.Committed
		if end.Before(n.heldSince) { // this hold has no commit that has succeeded
			end = n.now()
		}
		n.event.Held += end.Sub(n.heldSince)
		n.heldSince = time.Time{}
		n.event.Holds[len(n.event.Holds)-1].Released = end
	}
	if n.holdTask != nil {
		n.holdTask.End()
		n.holdTask = nil
	}
}

// failed notes that the session's part of the request has failed.
func (o *observation) failed(err error) {
	if n := o.lock(); n != nil {
		n.event.Err, n.event.Kind, n.event.Outcome = err, ruleOf(err).kind, "failed"
		o.mu.Unlock()
	}
}

// cameWith notes how many of the request's cookies none of the keys has signed, and how many are no genuine cookies for
// other reasons.
func (o *observation) cameWith(unknownKey, refused int) {
	if unknownKey+refused == 0 {
		return
	}
	if n := o.lock(); n != nil {
		n.event.UnknownKey, n.event.Refused = unknownKey, refused
		o.mu.Unlock()
	}
}

// foundDead notes how many of the request's cookies are those of sessions that have ended or expired.
func (o *observation) foundDead(cookies int) {
	if n := o.lock(); n != nil {
		n.event.Dead = cookies
		o.mu.Unlock()
	}
}

// runs notes that the handler is about to run, or the function of an Update.
func (o *observation) runs() {
	if o != nil {
		o.ran++
	}
}
