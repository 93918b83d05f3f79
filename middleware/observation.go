package middleware

import (
	"context"
	"runtime/trace"
	"sync"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
)

// An observation takes notes for one request, and tells the observers when the request holds nothing any more. It is
// the request's context for package records, so that a note is found to belong to the request. A nil observation takes
// no notes: there are no observers, and no execution trace is written.
//
// While the request may hold its session, notes are kept. They are told after a commit that comes before the handler
// returns, as for a stream, or at the end. What happens to a stream after its commit is told as it happens, by the
// observers' backlogs: an observer that blocks would keep the stream's handler from ending.
type observation struct {
	context.Context // of the request as it came in, in its task of the execution trace
	sessions        *Sessions
	rq              *request // of the latest run; nil in Update
	task, hold      *trace.Task
	found           records.Found // by the Take that is under way

	mu       sync.Mutex // guards the rest. It is locked last, and only backlogs are called with it held
	event    RequestEvent
	holding  time.Time // since when the request holds its session; zero: it does not
	keeping  bool      // notes are kept
	finished bool      // the event is the observers' now
	kept     []Event
	asked    Hold // what is known of a hold that is being waited for

	// Room, so that nearly all requests need no further memory.
	few [6]Event
	one [1]Hold
}

// observe begins an observation of something that arrived then, or returns nil if nobody wants to know.
func (s *Sessions) observe(ctx context.Context, arrived time.Time) *observation {
	if len(s.backlogs) == 0 && !trace.IsEnabled() {
		return nil
	}
	o := &observation{Context: ctx, sessions: s, keeping: true, event: RequestEvent{Arrived: arrived}}
	o.kept, o.event.Holds = o.few[:0], o.one[:0]
	if trace.IsEnabled() {
		o.Context, o.task = trace.NewTask(ctx, "latchkey request")
	}
	return o
}

// Value implements context.Context.
func (o *observation) Value(key any) any {
	if key == (records.CollectorKey{}) {
		return o
	}
	return o.Context.Value(key)
}

// Found implements records.Collector.
func (o *observation) Found() *records.Found {
	o.found = records.Found{}
	return &o.found
}

// Exchanged implements records.Collector.
func (o *observation) Exchanged(x *records.Exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.finished {
		o.event.RoundTrips++
	}
	o.keep((*ExchangeEvent)(x), o.keeping)
}

// Noticed implements records.Collector. A lost lock is told at once: whoever has lost it holds nothing.
func (o *observation) Noticed(n *records.Notice) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep((*SessionEvent)(n), o.keeping && n.What != "lost")
}

// keep keeps an event, or gives it to the backlogs. It is called with mu held.
func (o *observation) keep(e Event, keep bool) {
	if keep {
		o.kept = append(o.kept, e)
		return
	}
	for _, b := range o.sessions.backlogs {
		b.add((*lasting)(o), e)
	}
}

// Opened implements records.Collector.
func (o *observation) Opened(now records.Opened) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := &o.event
	if o.finished {
		return
	}
	if e.Acquired.IsZero() || e.Label == "" { // what counts is what it found when it first asked for the lock
		e.Queue, e.Behind, e.BehindProcess = now.Ahead, now.Behind, now.Process
	}
	o.asked = Hold{Queue: now.Ahead, Behind: now.Behind, BehindProcess: now.Process}
	e.Passed = e.Passed || now.Passed
	if now.Bytes > 0 {
		e.Bytes = now.Bytes
	}
}

// Sized implements records.Collector.
func (o *observation) Sized(bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.finished {
		o.event.Bytes = bytes
	}
}

// lasting is the observation as a context that does not end with the request: for commits, and for observers.
type lasting observation

func (*lasting) Deadline() (end time.Time, ok bool) { return end, false }
func (*lasting) Done() <-chan struct{}              { return nil }
func (*lasting) Err() error                         { return nil }
func (l *lasting) Value(key any) any                { return (*observation)(l).Value(key) }

// WithoutCancel implements records.Collector.
func (o *observation) WithoutCancel() context.Context { return (*lasting)(o) }

// A region is one of the execution trace, or none.
type region struct{ *trace.Region }

func (r region) end() {
	if r.Region != nil {
		r.End()
	}
}

// region begins a region of the execution trace. The same goroutine ends it.
func (o *observation) region(name string) region {
	if o == nil || o.task == nil {
		return region{}
	}
	return region{trace.StartRegion(o.Context, "latchkey "+name)}
}

// waited tells that the request, by its label, has waited for the lock, and whether it has acquired it.
func (o *observation) waited(label string, d time.Duration, acquired bool, now time.Time) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event.Label, o.event.Waited = label, o.event.Waited+d
	h := o.asked
	o.asked, h.Asked = Hold{}, now.Add(-d)
	if !acquired {
		h.Released = now
		o.event.Holds = append(o.event.Holds, h)
		return
	}
	h.Acquired = now
	o.event.Holds = append(o.event.Holds, h)
	o.holds(now)
}

// holdsOn tells that the second run of a handler goes on with the lock that the first run has acquired.
func (o *observation) holdsOn(now time.Time) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds(now)
}

// holds is called with mu held.
func (o *observation) holds(since time.Time) {
	o.holding = since
	if o.task != nil { // a task, since another goroutine may end it, which a region does not allow
		_, o.hold = trace.NewTask(o.Context, "latchkey hold")
	}
}

// opened tells that the session with this id is open. If from is none, nothing is stored yet.
func (o *observation) opened(id string, from origin) {
	if o == nil {
		return
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keeping = true
	if from == none {
		return
	}
	o.event.Session = id
	if o.task != nil {
		trace.Log(o.Context, "session", id)
	}
	if o.event.Acquired.IsZero() {
		o.event.Acquired = now
	}
}

// outcomes are those of the actions of a commit.
var outcomes = [...]string{leave: "unchanged", touch: "touched", save: "saved", create: "began", renew: "renewed", destroy: "ended", forget: "ended", saveUnlocked: "saved"}

// committed tells of a commit that was tried. It is called with request.mu held.
func (o *observation) committed(do action, err error) {
	if o == nil || err != nil { // the error is told by failed, or the handler runs again
		return
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event.Committed, o.event.Outcome = now, outcomes[do]
}

// did tells what the request has done to its session's id.
func (o *observation) did(e event) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &o.event
	r.Began = r.Began || e.do == create
	r.Renewed = r.Renewed || e.do == renew
	r.LoggedIn = r.LoggedIn || e.how == "login"
	r.Ended = r.Ended || e.how == "destroy"
}

// abandoned tells that the handler has panicked before its commit.
func (o *observation) abandoned() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.event.Err == nil {
		o.event.Outcome = "abandoned"
	}
}

// released tells that the request does not hold its session any more.
func (o *observation) released() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.holding.IsZero() {
		end := o.event.Committed
		if end.Before(o.holding) { // this hold has no commit that has succeeded
			end = time.Now()
		}
		o.event.Held += end.Sub(o.holding)
		o.holding = time.Time{}
		o.event.Holds[len(o.event.Holds)-1].Released = end
	}
	if o.hold != nil {
		o.hold.End()
		o.hold = nil
	}
}

// failed tells that the session's part of the request has failed.
func (o *observation) failed(err error, kind string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.finished { // a change that comes late may come from a goroutine that outlives the request
		o.event.Err, o.event.Kind, o.event.Outcome = err, kind, "failed"
	}
}

// cameWith tells how many of the request's cookies none of the keys has signed, and how many are no genuine cookies for
// other reasons.
func (o *observation) cameWith(unknownKey, refused int) {
	if o == nil || unknownKey+refused == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event.UnknownKey, o.event.Refused = unknownKey, refused
}

// dead tells that the session of a cookie has ended or expired.
func (o *observation) dead() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event.Dead++
}

// runs tells that the handler is about to run, or the function of an Update.
func (o *observation) runs() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.event.Runs++
}

// tell tells what was kept, and keeps nothing any more until the session is opened again. It is called with nothing
// held.
func (o *observation) tell() {
	if o == nil {
		return
	}
	o.sessions.tellAll((*lasting)(o), o.take(), 0)
}

// take returns what was kept.
func (o *observation) take() []Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := o.kept
	o.kept, o.keeping = nil, false
	return kept
}

// finish tells what is left, and then the request's event if it has used a session.
func (o *observation) finish() {
	if o == nil {
		return
	}
	o.released()
	if o.task != nil {
		defer o.task.End()
	}
	kept := o.take()
	o.mu.Lock()
	o.finished = true // from now on the event does not change
	o.mu.Unlock()
	e := &o.event
	if !e.Acquired.IsZero() || e.RoundTrips > 0 || e.Err != nil || e.UnknownKey+e.Refused > 0 {
		if o.rq != nil {
			e.describe(o.rq)
			o.rq = nil // an observer may keep the event
		}
		e.Done = time.Now()
		kept = append(kept, e)
	}
	o.sessions.tellAll((*lasting)(o), kept, 0)
}

// describe says which request it was, when that is over.
func (e *RequestEvent) describe(rq *request) {
	e.Session = rq.identity.knownID()
	e.Method, e.Route = rq.name()
	rq.mu.Lock()
	e.Mode, e.Passive = rq.mode, rq.passive
	rq.mu.Unlock()
	if e.Label == "" { // it has not asked for the lock
		e.Label = rq.label()
	}
}
