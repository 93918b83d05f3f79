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
// A handler calls Reopen after a commit: its own, or that of a response that has begun. What follows
// from that:
//
//   - Reopen acquires the session by its present id, which may be one that the commit has begun, under
//     the same rules as at first: the queue, up to LockWait again, MaxHold, and the end of the
//     handler's context if the lock is lost. The session holds what is stored by then, and nothing of
//     what it held before.
//   - If there was no record to be acquired, and the commit has made none, the session is the same
//     empty one again, and Reopen costs nothing.
//   - A session that is over, since this request or another has ended it or it has expired, stays
//     so: no write of this request begins another in its place.
//   - In mode ReadOnly the record is read again. In mode Optimistic it is locked from then on.
//   - The next commit is like the first one. If it fails before the response has begun, its error becomes
//     the response, together with the cookie of the commits that have succeeded. The text then says that
//     not all was saved, and Reopen is refused from then on. The response has one cookie: of the last
//     commit that has changed it.
//   - Once the response has begun there is no way to send an error or a cookie. If a commit fails, the
//     handler may reopen the session and try again. If the last commit has failed when the handler
//     returns, the response is cut off. A commit that would begin an id fails, and so does one after
//     Remember. A commit that ends the session does not need the client.
//   - What the handler leaves open is committed when it returns. From then on Reopen is refused,
//     and a Reopen that still waits in another goroutine fails.
//
// request.mu makes each of these steps one: while Reopen waits, a commit, by another goroutine or
// since the response begins, waits for it, and then commits what was reopened.

var errCookieLate = errors.New("middleware: the answer had begun, so no cookie can reach the client: " +
	"begin the session, give it a new id, or call Remember, before the first byte of the answer")

// ReopenSession implements keep.Keeper.
func (rq *request) ReopenSession(ctx context.Context) error {
	rq.mu.Lock()
	defer rq.mu.Unlock()
	if !rq.committed {
		return session.ErrOpen
	}
	err := rq.reopen(ctx)
	if err != nil { // which the handler need not log
		err = fmt.Errorf("middleware: Reopen: %w", err)
		rq.logFailure(err)
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
	o := opening{rq: rq, ctx: ctx, lock: rq.mode == Optimistic}
	record, err := records.Record{}, context.Cause(ctx)
	if err == nil && (rq.origin == locked || rq.origin == readOnly || rq.origin == optimistic) {
		rq.waited = 0
		record, err = o.acquire(rq.identity.knownID())
	}
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%w: %w", gone("the session is over: it has timed out, or was ended more than a minute ago"), err)
	}
	if _, err := o.decode(record, err); err != nil {
		return err
	}
	rq.committed, rq.err = false, nil
	return nil
}

// closedForGood returns why the session must not be opened again.
func (rq *request) closedForGood() error {
	late := rq.late.Load()
	switch {
	case late != nil: // the response says that something is lost
		return *late
	case rq.err != nil && !rq.begun:
		return fmt.Errorf("after a commit that failed: %w", rq.err)
	case rq.origin == ended:
		return gone("session " + rq.identity.knownID() + " was ended by this request")
	}
	return nil
}
