package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// # The way of an optimistic request
//
// The handler runs on what was last saved, without a lock. If it has changed nothing, there is nothing to
// commit. Otherwise the commit ends in one of four ways:
//
//   - No request holds the session, and its record is unchanged since it was read. The new record is saved,
//     in one round trip (Engine.SaveLoaded).
//   - Another request holds the session, or the handler wants to end the session or to change its ID or its end,
//     or the request is passive. The lock is acquired, under the rules of any exclusive request. If the record is
//     unchanged since it was read, all that the handler has read is true, and the commit goes on under the lock.
//   - Another request has written. Nothing of the handler's work was saved, and nothing of its response
//     was sent: both are discarded, and the handler runs again, with the lock that was just acquired.
//     From here on the request is exclusive, and there is no third run.
//   - Another request has written, but the handler must not run again, since its work may have left the
//     process already: the handler has called Commit, or the response begins, or other Sessions inside have
//     saved something. The lock is released, and the request fails with store.ErrConflict.
//
// So a request is in one of four states:
//
//	first == nil, second == nil   the handler runs with the lock, or the session is not open
//	first != nil                  the handler runs without the lock, on first.record
//	first.next != nil             the handler's work was discarded, and the handler will run again
//	second != nil                 (another request) the handler runs again
//
// # Why this is linearizable
//
// A request that has changed nothing takes effect when its record is read. A request that is saved without the
// lock takes effect when it is saved, since its record is then unchanged since it was read. All other requests
// are exclusive. Of two runs only the second takes effect: when it begins, the record that the first run has
// read is gone. Records never come back, so the command of the first run changes nothing any more, however
// late it comes. So the second run is safe from the first even if it does not write.
//
// There is one exception, if the network copies a command. The command was refused since the session was held.
// Redis may execute the copy while the session is free, before this request has the lock. Then the request
// finds its own record, and there is no second run. But if another request has written after the copy, both
// runs take effect.
//
// # What the second run has
//
// The second run has its own request, response, context and session. The request is a deep copy of the first
// run's request at its beginning: header, URL, forms, trailers. Only the values in the context are shared, and
// the state of a chi router among them is put back: see chi.go. What the first run has done to its response and
// the connection is discarded: see draft.go. But an informational response, such as 103, has been sent. The first
// run's context ends before the second run begins, so a goroutine that is left of the first run sees that end. Such
// a goroutine cannot change the second run's session. Nor can it change the response by the first run's
// ResponseWriter or header.

var (
	safeMethods = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

	errUnsafe = errors.New("middleware: mode Optimistic is for GET, HEAD, OPTIONS and TRACE, " +
		"since the handler may run twice: give the route another mode")
	errDiscarded = errors.New("middleware: another request has changed the session, so the handler runs again")
)

// A firstRun is the state with which the first run of a handler, without the lock, begins.
type firstRun struct {
	record records.Record // the record that was read
	base   *http.Request  // the request as it came in, for a second run
	next   *secondRun     // set by the commit if the handler must run again
}

// A secondRun is the state with which the second run of a handler begins.
type secondRun struct {
	id   cameID        // of the session
	hold *records.Hold // the session's lock; nil if the session has ended or expired
	err  error         // why the record cannot be used: corrupt, too large, ended or expired
}

// readUnlocked reads a record for a handler that runs without the lock. done is true if the record was read, does not
// exist, or could not be read. Otherwise the lock is needed, for one of three reasons: the record is unusable, and may
// have to be replaced; the request has a body, which a second run could not read; or the first run may change a session
// of other Sessions around this one.
func (o *opening) readUnlocked(id string) (record records.Record, done bool, err error) {
	rq, s := o.rq, o.rq.sessions
	// Over HTTP/2, and inside http.MaxBytesHandler, the Body of a request without a body is not http.NoBody.
	hasBody := rq.base.Body != nil && rq.base.ContentLength != 0
	if rq.second != nil || rq.outer != nil || hasBody {
		return record, false, nil
	}
	rq.origin = optimistic
	terms := s.terms
	terms.Quiet = rq.passive
	record, err = s.store.Load(o.ctx, id, terms)
	if err == nil {
		rq.first = &firstRun{record: record, base: rq.base.Clone(rq.base.Context())}
	}
	return record, !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrTooLarge), err
}

// lingering is how long a commit waits for the lock after the client has gone away. A client that goes away
// should not undo its request, but no client waits for the response.
const lingering = time.Second

// saveUnlocked saves the changes of a handler that has run without the lock, or returns errDiscarded and sets
// first.next.
func (c *commit) saveUnlocked(ctx context.Context) error {
	rq, s, first, id := c.rq, c.rq.sessions, c.rq.first, c.rq.identity.knownID()
	var saved records.Record
	// A save without the lock extends the idle timeout.
	if !c.change.Renewed && !c.change.Destroyed && !c.change.Remembered && !rq.passive {
		var err error
		saved, err = s.store.SaveLoaded(ctx, id, first.record, c.change.Snapshot, s.terms)
		if !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) {
			rq.saved = rq.saved || err == nil
			return err
		}
	}
	o := opening{rq: rq, ctx: ctx, lock: true}
	record, err := o.acquire(id)
	if rq.hold == nil && errors.Is(ctx.Err(), context.Canceled) {
		rq.waited = max(rq.waited, s.terms.LockWait-lingering)
		o.ctx = context.WithoutCancel(ctx)
		record, err = o.acquire(id)
	}
	hold, isOver := rq.hold, errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound)
	switch {
	case hold == nil && !isOver:
		return endedWith(ctx, err)
	case err == nil && record.Same(first.record):
		return c.carryOut()
	case err == nil && record.Same(saved): // by a copy of the command: see above
		rq.saved, rq.hold = true, nil
		return hold.Touch(ctx)
	case c.by != handlerEnd:
		return c.conflict(c.by, err)
	case rq.savedInside():
		return c.conflict("other Sessions inside have saved something", err)
	}
	rq.log(slog.LevelDebug, "again", "handler runs again, since another request has changed the session")
	rq.hold, first.next = nil, &secondRun{id: cameID{id, rq.role}, hold: hold, err: err}
	return errDiscarded
}

// conflict returns the error of a handler that cannot run again. after says what prevents a second run. err is
// the error of acquiring the lock.
func (c *commit) conflict(after string, err error) error {
	if !errors.Is(err, store.ErrGone) {
		err = store.ErrConflict
	}
	return fmt.Errorf("middleware: session %s: another request has changed it, "+
		"and the handler cannot run again after %s: %w", c.rq.identity.knownID(), after, err)
}

// mayRunAgain reports whether the handler, which is about to run, may run a second time. In mode Lazy its route may
// be optimistic.
func (rq *request) mayRunAgain() bool {
	return rq.first != nil || rq.lazy != nil && slices.Contains(safeMethods, rq.base.Method)
}

// runsAgain reports whether the handler's work was discarded.
func (rq *request) runsAgain() bool { return rq.first != nil && rq.first.next != nil }

// secondResponse returns the response of the second run.
func (rw *response) secondResponse() *response {
	rq := &rw.request
	_, route := rq.name()
	second := rq.sessions.newResponse(rw.around, rq.first.base, Optimistic, route)
	second.request.second, second.request.hold = rq.first.next, rq.first.next.hold
	rq.mu.Lock() // a goroutine of the first run may commit now
	second.request.came = rq.came
	second.request.passive = rq.passive
	if rq.idChanges != nil {
		own := *rq.idChanges
		second.request.idChanges = &own
	}
	rq.mu.Unlock()
	if o := rq.seen; o != nil {
		second.request.seen, o.rq = o, &second.request
	}
	second.request.waited = rq.waited // it may have to wait for another session
	second.request.identity.id, second.request.identity.arrived = rq.identity.knownID(), rq.identity.arrived
	second.request.identity.endedAll = rq.identity.allEnded()
	return second
}
