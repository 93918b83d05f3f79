package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/store"
)

// # The way of an optimistic request
//
// The handler runs on what was last saved, without a lock. If it has changed nothing, that was all.
// Else the commit goes on until one of these is so:
//
//   - Nobody holds the session, and the record is still the one that was read: it is saved, in one
//     exchange (store.SaveLoaded).
//   - The session is held, or is to be ended or to get a new id or end: its lock is taken, under the
//     rules of any exclusive request. If the record is still the one that was read, all that the handler
//     has read is true, and the commit goes on under the lock.
//   - Another has written. Nothing of the handler's work was saved, and nothing of its answer sent:
//     both are thrown away, and the handler runs again, with the lock that was just taken. From
//     here on the request is like any exclusive one, and there is no third run.
//   - The same, but the handler must not run again, since its work may have left the process
//     already: the commit comes from its own call of Commit, or with the beginning of the answer,
//     or other Sessions inside these have saved something. The lock is released, and the request
//     fails with store.ErrConflict.
//
// # Why this is linearizable
//
// A request that has changed nothing takes effect when its record is read; one that is saved without
// the lock, at that moment, since its record is then still the one that was read; all others are
// exclusive. Of two runs only the second one takes effect: when it begins, the record that the first
// one has read is gone, and records never come back, so the first one's command can do nothing any
// more, however late it comes. That is why the second run need not write to be safe from it.
//
// One thing is left. If the network makes a copy of a command that was refused since the session was
// held, the copy may be done in a moment in which it is free, before this request has the lock. Then
// the record that is found is the request's own, and there is no second run. Only if another has
// written on top of that by then, both runs take effect.
//
// # What the second run has
//
// A request, a response, a context and a session of its own. The request is a deep copy of what the first
// run had in the beginning: header, URL, forms, trailers. Only the values in its context are the same
// ones. What the first run has done to its answer and the connection is thrown away: see draft.go. But
// an informational answer, such as 103, has been sent. The first one's context has ended by then.
// What it has left running sees that, and can change neither the second one's session nor, by the
// ResponseWriter or the header that it has, the answer.

var (
	errUnsafe = errors.New("middleware: mode Optimistic is for GET, HEAD, OPTIONS and TRACE, " +
		"since the handler may run twice: give the route another mode")
	errRunAgain = errors.New("middleware: another request has changed the session, so the handler runs again")
)

// An attempt is what a request in mode Optimistic has in addition, once it has read a record.
type attempt struct {
	record records.Record // what the first run has read
	base   *http.Request  // as it came in, for the second run
	again  bool           // this is the second run
	hold   *records.Hold  // what the second run begins with; nil: there was no session any more
	over   string         // the id of that session, for which nobody need wait again
	err    error          // of taking it: its record cannot be used, or the session is over
}

// mayRunTwice reports whether the handler may run without a lock. Where that is not certain to do no
// harm, since the body would be gone, or other Sessions around these have a session that the first
// run may change, the request is exclusive from the start.
func (rq *request) mayRunTwice() bool {
	if rq.mode != Optimistic || rq.committed || rq.attempt != nil && rq.attempt.again {
		return false
	}
	return rq.outer == nil && !hasBody(rq.base)
}

// hasBody reports whether there is anything to be read. Over HTTP/2, and inside http.MaxBytesHandler,
// the Body of a request that has none is not http.NoBody.
func hasBody(r *http.Request) bool { return r.Body != nil && r.ContentLength != 0 }

// safe returns an error for a method that a handler may not run twice for.
func safe(method string) error {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return nil
	}
	return fmt.Errorf("%w: this is a %s", errUnsafe, clip(method))
}

// load reads a record for a handler that runs without its lock. done: it is there, or known not to
// be; what cannot be read needs the lock, so that it may be replaced.
func (rq *request) load(ctx context.Context, id string) (record records.Record, done bool, err error) {
	s := rq.sessions
	rq.origin = optimistic
	record, err = s.store.Load(ctx, id, s.terms)
	if err == nil {
		rq.attempt = &attempt{record: record, base: rq.base.Clone(rq.base.Context())}
	}
	return record, !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrTooLarge), err
}

// lingering is how long a commit waits for the lock when the client has gone away. That should not undo
// what its request has done, but nobody waits for the answer.
const lingering = time.Second

// settle saves what a handler has changed that has run without the lock, or returns errRunAgain. It
// is called with mu held.
func (rq *request) settle(by string, change keep.Change, done *event) error {
	s, a, id, ctx := rq.sessions, rq.attempt, rq.knownID(), rq.base.Context()
	var saved records.Record
	if !change.Renewed && !change.Destroyed && !change.Remembered {
		var err error
		saved, err = s.store.SaveLoaded(ctx, id, a.record, change.Snapshot, s.terms)
		if !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnavailable) {
			rq.saved = rq.saved || err == nil
			return err
		}
	}
	record, err := rq.lock(ctx, id)
	if rq.hold == nil && errors.Is(ctx.Err(), context.Canceled) {
		rq.waited = max(rq.waited, s.terms.LockWait-lingering)
		record, err = rq.lock(context.WithoutCancel(ctx), id)
	}
	over := errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound)
	switch {
	case rq.hold == nil && !over:
		return endedWith(ctx, err)
	case err == nil && record.Same(a.record):
		return rq.carryOut(by, change, done)
	case err == nil && record.Same(saved): // by a copy of the command: see above
		rq.saved = true
		return rq.giveBack().Touch(ctx)
	case by != handlerEnd, rq.savedInside():
		if rq.unlock(); !errors.Is(err, store.ErrGone) {
			err = store.ErrConflict
		}
		if by == handlerEnd {
			by = "other Sessions inside have saved something"
		}
		return fmt.Errorf("middleware: session %s: another request has changed it, "+
			"and the handler cannot run again after %s: %w", id, by, err)
	}
	rq.log(slog.LevelDebug, "again", "handler runs again, since another request has changed the session")
	if a.hold, a.err = rq.giveBack(), err; over {
		a.over = id
	}
	return errRunAgain
}

// savedInside reports whether other Sessions inside have saved something, or may have. Each of their
// handlers has returned.
func (rq *request) savedInside() bool {
	for inner := rq.inner.Load(); inner != nil; inner = inner.sibling {
		inner.mu.Lock()
		saved := inner.saved || inner.err != nil
		inner.mu.Unlock()
		if saved || inner.savedInside() {
			return true
		}
	}
	return false
}

// discard throws away the answer of a first run. What it has left running writes to nowhere.
func (rw *response) discard() {
	rw.buffered = nil
	rw.failed, rw.ignored = errRunAgain, make(http.Header)
	h := rw.inner.Header()
	clear(h)
	maps.Copy(h, rw.before)
}

// again returns the response of the second run.
func (rw *response) again() *response {
	first := &rw.request
	a := first.attempt
	return &response{
		request: request{
			sessions: first.sessions, mode: Optimistic, pattern: first.route(), base: a.base,
			id: first.knownID(), arrived: first.arrived, hold: a.hold, attempt: &attempt{again: true, over: a.over, err: a.err},
		},
		inner:  rw.inner,
		before: snapshot(rw.inner.Header()),
		tail:   tail{declared: -1},
	}
}
