package middleware

import (
	"context"
	"errors"
	"fmt"

	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// # A session that is reopened
//
// A handler calls Reopen after a commit, which it has called itself, or which came with the beginning of the
// response. The rules are:
//
//   - Reopen acquires the session by its present ID, which may be new since the commit. The rules are those of
//     the first time: the queue, up to LockWait again, MaxHold, and the end of the handler's context if the
//     lock is lost. The session then holds what is stored, and nothing of its old content.
//   - If the session had no record, and the commit has made none, the session is empty again, and Reopen costs
//     nothing.
//   - A session that this request or another has ended, or that has expired, stays ended: no write of this
//     request begins another session in its place.
//   - In mode ReadOnly the record is read again. In mode Optimistic the session is locked from now on.
//   - The next commit is like the first. If it fails before the response has begun, its error becomes the
//     response, together with the cookie of the commits that have succeeded. The text then says that not all
//     was saved, and Reopen is refused from then on. The response has one cookie: the cookie of the last
//     commit that has changed the cookie.
//   - After the response has begun, neither an error nor a cookie can be sent. If a commit fails, the handler
//     may reopen the session and try again. If the last commit before the handler returns has failed, the
//     response is cut off. A commit that would begin an ID fails, and so does a commit after Remember. A
//     commit that ends the session succeeds, since it needs no cookie.
//   - If the session is still open when the handler returns, it is committed then. From then on Reopen is
//     refused, and a Reopen that still waits in another goroutine fails.
//
// request.mu makes a Reopen or a commit one step: while Reopen waits, a commit by another goroutine waits for
// it, and then commits the reopened session.

var errCookieLate = errors.New("middleware: the response had begun, so no cookie can reach the client: " +
	"begin the session, give it a new ID, or call Remember, before the first byte of the response")

// ReopenSession implements keep.Keeper.
func (rq *request) ReopenSession(ctx context.Context) error {
	rq.mu.Lock()
	defer rq.mu.Unlock()
	if !rq.committed {
		return session.ErrOpen
	}
	isResponse := rq.responseError() != nil && rq.err != errAbandoned
	err := rq.reopen(ctx)
	if err != nil {
		err = fmt.Errorf("middleware: Reopen: %w", err)
		if !isResponse { // which is logged by itself
			rq.logFailure(err)
		}
	}
	return err
}

// reopen is called with mu held.
func (rq *request) reopen(ctx context.Context) error {
	defer func() {
		if rq.committed { // it failed, or OnCorrupt has panicked
			rq.releaseLock()
		}
	}()
	if err := rq.closedForGood(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := rq.context.awaitReturn(cancel); err != nil {
		return err
	}
	defer rq.context.stopAwaiting()
	if rq.hasLeft() { // without this, the error might tell of a client that has gone away
		return rq.endedMeanwhile()
	}
	o := opening{rq: rq, ctx: ctx, lock: rq.mode == Optimistic}
	record, err := records.Record{}, context.Cause(ctx)
	if err == nil && rq.origin.isStored() {
		rq.waited = 0
		record, err = o.acquire(rq.identity.knownID())
	}
	switch {
	case hasEnded(err) && rq.hasMoved():
		err = store.ErrMoved
	case errors.Is(err, store.ErrNotFound):
		err = fmt.Errorf("%w: %w", gone("the session has expired, or was ended more than a minute ago"), err)
	}
	if _, err := o.decode(record, err); err != nil {
		return err
	}
	if rq.err != nil { // of a commit in a stream, which may have lost changes
		rq.logFailure(rq.err)
	}
	rq.committed, rq.err = false, nil
	rq.seen.opened(rq.origin)
	return nil
}

// closedForGood returns why the session must not be opened again.
func (rq *request) closedForGood() error {
	err := rq.responseError()
	if err == nil && rq.origin == ended {
		err = gone("session " + rq.identity.knownID() + " was ended by this request")
	}
	return err
}

// responseError returns the error that the response tells, or nil if it is not known yet that there will be one.
func (rq *request) responseError() error {
	late := rq.late.Load()
	switch {
	case late != nil: // a change is lost
		return *late
	case rq.err != nil && !rq.begun:
		return fmt.Errorf("after a commit that failed: %w", rq.err)
	}
	return nil
}
