package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// # The way of an optimistic request
//
// The handler runs on what was last saved, without a lock. If it has changed nothing, that was all.
// Otherwise the commit ends in one of four ways:
//
//   - Nobody holds the session, and the record is still the one that was read. The new record is
//     saved, in one round trip (Engine.SaveLoaded).
//   - The session is held, or is to be ended, or is to get a new id or end. The lock is acquired, under
//     the rules of any exclusive request. If the record is still the one that was read, all that the
//     handler has read is true, and the commit goes on under the lock.
//   - Another request has written. Nothing of the handler's work was saved, and nothing of its response
//     was sent: both are discarded, and the handler runs again, with the lock that was just acquired.
//     From here on the request is like any exclusive one, and there is no third run.
//   - Another request has written, but the handler must not run again, since its work may have left the
//     process already: the commit comes from its own call of Commit, or with the beginning of the
//     response, or other Sessions inside these have saved something. The lock is released, and the
//     request fails with store.ErrConflict.
//
// So a request is in one of these states:
//
//	first == nil, second == nil   the handler runs with the lock, or the session is not open
//	first != nil                  it runs without the lock, on first.record
//	first.next != nil             its work was discarded, and it is to run again
//	second != nil                 (another request) it runs again
//
// # Why this is linearizable
//
// A request that has changed nothing takes effect when its record is read; one that is saved without
// the lock, at that moment, since its record is then still the one that was read; all others are
// exclusive. Of two runs only the second one takes effect: when it begins, the record that the first
// one has read is gone, and records never come back, so the first one's command can do nothing any
// more, however late it comes. That is why the second run need not write to be safe from it.
//
// One case is left. If the network makes a copy of a command that was refused since the session was
// held, Redis may execute the copy while the session is free, before this request has the lock. Then
// the record that is found is the request's own, and there is no second run. Only if another has
// written on top of that by then, both runs take effect.
//
// # What the second run has
//
// A request, a response, a context and a session of its own. The request is a deep copy of what the first
// run had in the beginning: header, URL, forms, trailers. Only the values in its context are the same
// ones. What the first run has done to its response and the connection is discarded: see draft.go. But
// an informational response, such as 103, has been sent. The first run's context has ended by then.
// A goroutine that it has left running sees that, and can change neither the second run's session nor,
// by the ResponseWriter or the header that it has, the response.

var (
	safeMethods = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

	errUnsafe = errors.New("middleware: mode Optimistic is for GET, HEAD, OPTIONS and TRACE, " +
		"since the handler may run twice: give the route another mode")
	errDiscarded = errors.New("middleware: another request has changed the session, so the handler runs again")
)

// A firstRun is what a handler that runs without the lock began with.
type firstRun struct {
	record records.Record // what it has read
	base   *http.Request  // the request as it came in, for a second run
	next   *secondRun     // set by the commit, if the handler is to run again
}

// A secondRun is what the second run of a handler begins with.
type secondRun struct {
	id   string        // of the session
	hold *records.Hold // its lock; nil if the session is over
	err  error         // why its record cannot be used, or that it is over
}

// readUnlocked reads a record for a handler that runs without its lock. done: the record is there, or known not
// to be. A record that cannot be used needs the lock, so that it may be replaced. So does a handler that must not
// run twice, since the body would be gone, or other Sessions around these have a session that the first run may
// change.
func (o *opening) readUnlocked(id string) (record records.Record, done bool, err error) {
	rq, s := o.rq, o.rq.sessions
	// Over HTTP/2, and inside http.MaxBytesHandler, the Body of a request that has none is not http.NoBody.
	hasBody := rq.base.Body != nil && rq.base.ContentLength != 0
	if rq.second != nil || rq.outer != nil || hasBody {
		return record, false, nil
	}
	rq.origin = optimistic
	record, err = s.store.Load(o.ctx, id, s.terms)
	if err == nil {
		rq.first = &firstRun{record: record, base: rq.base.Clone(rq.base.Context())}
	}
	return record, !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrTooLarge), err
}

// lingering is how long a commit waits for the lock when the client has gone away. That should not undo
// what its request has done, but nobody waits for the response.
const lingering = time.Second

// saveUnlocked saves what a handler has changed that has run without the lock, or returns errDiscarded
// and sets first.next.
func (c *commit) saveUnlocked(ctx context.Context) error {
	rq, s, first, id := c.rq, c.rq.sessions, c.rq.first, c.rq.identity.knownID()
	var saved records.Record
	if !c.change.Renewed && !c.change.Destroyed && !c.change.Remembered {
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
	rq.hold, first.next = nil, &secondRun{id: id, hold: hold, err: err}
	return errDiscarded
}

// conflict returns the error of a handler that cannot run again after what has happened. err is that of
// acquiring the lock.
func (c *commit) conflict(after string, err error) error {
	if !errors.Is(err, store.ErrGone) {
		err = store.ErrConflict
	}
	return fmt.Errorf("middleware: session %s: another request has changed it, "+
		"and the handler cannot run again after %s: %w", c.rq.identity.knownID(), after, err)
}

// runsAgain reports whether the handler's work was discarded.
func (rq *request) runsAgain() bool { return rq.first != nil && rq.first.next != nil }

// secondResponse returns the response of the second run.
func (rw *response) secondResponse() *response {
	rq := &rw.request
	_, route := rq.name()
	second := rq.sessions.newResponse(rw.around, rq.first.base, Optimistic, route)
	second.request.second, second.request.hold = rq.first.next, rq.first.next.hold
	second.request.identity.id, second.request.identity.arrived = rq.identity.knownID(), rq.identity.arrival()
	return second
}
