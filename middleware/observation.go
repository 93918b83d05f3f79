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
// observers' backlogs: otherwise an observer that blocks would keep the handler from ending. There is one exception:
// the request itself tells that its session has ended, at its next commit or at the end.
type observation struct {
	context.Context // of the request as it came in, in its task of the execution trace
	sessions        *Sessions
	task            *trace.Task
	arrived         time.Time
	rq              *request // of the latest run; nil in Update, and after finish. Only the request's goroutine uses it
	ran             int      // how often the handler ran. Only the request's goroutine uses it

	mu    sync.Mutex // guards the rest. It is locked last: only backlogs and package runtime/trace are called with it held
	notes *notes     // nil: nothing was noted yet, or the request is done
	done  bool       // the request is done, and its notes are the observers'
}

// observe begins an observation of something that arrived then, or returns nil if nobody wants to know.
func (s *Sessions) observe(ctx context.Context, arrived time.Time) *observation {
	if len(s.backlogs) == 0 && !trace.IsEnabled() {
		return nil
	}
	o := &observation{Context: ctx, sessions: s, arrived: arrived}
	if trace.IsEnabled() {
		o.Context, o.task = trace.NewTask(ctx, "latchkey request")
	}
	return o
}

// lock locks mu and returns the notes. The first call takes them. If o is nil, or the request is done, lock returns nil,
// and mu is not locked.
func (o *observation) lock() *notes {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	if o.done {
		o.mu.Unlock()
		return nil
	}
	if o.notes == nil {
		o.notes = newNotes(o.arrived)
	}
	return o.notes
}

// Value implements context.Context.
func (o *observation) Value(key any) any {
	if k, ok := key.(records.CollectorKey); ok && k.Of == o.sessions.store && len(o.sessions.backlogs) > 0 {
		return o
	}
	return o.Context.Value(key)
}

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

// wait begins the region of a wait for the lock of a session. The ID is logged first: a wait may be in vain, or go on
// when the trace ends.
func (o *observation) wait(id string) region {
	if o != nil && o.task != nil {
		trace.Log(o.Context, "session", id)
	}
	return o.region("wait")
}

// tell tells what was kept, and stops keeping events until the session is opened again. It is called with no mutex
// held. If another goroutine has opened the session again already, what was kept is told later.
func (o *observation) tell() {
	n := o.lock()
	switch {
	case n == nil:
	case !n.heldSince.IsZero():
		o.mu.Unlock()
	default:
		kept := n.takeKept()
		o.mu.Unlock()
		o.sessions.tell(lasting{o}, kept, o.sessions.backlogs)
	}
}

// finish tells what is left, and then the request's event if it has used a session.
func (o *observation) finish() {
	n := o.lock()
	if n == nil {
		return
	}
	n.released()
	o.notes, o.done = nil, true
	o.mu.Unlock()
	rq := o.rq
	o.rq = nil // an observer may keep its context, which must not keep the request
	if o.task != nil {
		defer o.task.End()
	}
	e := &n.event
	if !e.Acquired.IsZero() || e.Began || len(e.Holds) > 0 || e.Err != nil || e.UnknownKey+e.Refused > 0 || rq.cameWithAny() {
		if rq != nil {
			e.describe(rq, n.wasOpen)
		}
		if o.task != nil {
			if e.Session != "" && len(e.Holds) == 0 { // no wait has logged it
				trace.Log(o.Context, "session", e.Session)
			}
			trace.Log(o.Context, "label", e.Label)
		}
		e.Runs, e.Done = o.ran, n.now()
		n.kept = append(n.kept, e)
	}
	o.sessions.tell(lasting{o}, n.kept, o.sessions.backlogs)
	n.free() // after a runtime.Goexit in an observer this is not reached
}

// cameWithAny reports whether one of the request's cookies was genuine, and was looked up.
func (rq *request) cameWithAny() bool {
	if rq == nil {
		return false
	}
	rq.mu.Lock()
	defer rq.mu.Unlock()
	return rq.came != [roles]bool{}
}

// describe notes which request it was, when that request is over, and whether it has opened a stored session.
func (e *RequestEvent) describe(rq *request, wasOpen bool) {
	id, route := rq.identity.known()
	if wasOpen || e.Began || e.Err != nil { // otherwise the ID was only drawn, and nothing is stored under it
		e.Session = id
	}
	e.Method, e.Route = rq.method(), route
	rq.mu.Lock()
	e.Mode, e.Passive = rq.mode, rq.passive
	rq.mu.Unlock()
	if e.Label == "" { // no lock was asked for. Options.Label may panic, and the response is sent already
		e.Label = rq.route()
	}
}
