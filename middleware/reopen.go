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
// A handler calls Reopen after a commit: its own, or that of an answer that has begun. This is how
// the rest of the machine goes on:
//
//   - Reopen takes the session by its id of now, which may be one that the commit has begun, under
//     the same rules as at first: the queue, up to LockWait again, MaxHold, and the end of the
//     handler's context if the lock is lost. The session holds what is stored by then; nothing of
//     what it held before goes on.
//   - Where there was no record to be taken, and the commit has made none, the session is the same
//     empty one again, and Reopen costs nothing.
//   - A session that is over, since this request or another has ended it or it has timed out, stays
//     so: no write of this request begins another in its place.
//   - In mode ReadOnly the record is read again. In mode Optimistic it is locked from then on.
//   - The next commit is like the first one. One that fails before the answer has begun becomes the
//     answer, together with the cookie of those that have succeeded; its text then says that not
//     all was saved, and Reopen is refused from then on. The answer has one cookie: of the last
//     commit that has changed it.
//   - Once the answer has begun there is no way to send an error or a cookie. A commit that fails
//     leaves the handler the choice to reopen the session and try again. If the last one has failed
//     when the handler returns, the answer is cut off. One that would begin an id fails, and so does
//     one after Remember; one that ends the session does not need the client.
//   - What the handler leaves open is committed when it returns. From then on Reopen is refused,
//     and one that still waits in another goroutine ends.
//
// request.mu makes each of these steps one: while Reopen waits, a commit, by another goroutine or
// since the answer begins, waits for it, and then commits what was reopened.

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
			rq.unlock()
		}
	}()
	if err := rq.closedForGood(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := rq.context.wait(cancel); err != nil {
		return err
	}
	defer rq.context.stopWaiting()
	record, err := records.Record{}, context.Cause(ctx)
	if err == nil {
		record, err = rq.takeAgain(ctx)
	}
	if _, err = rq.use(ctx, record, err); err != nil {
		return err
	}
	rq.committed, rq.err = false, nil
	return nil
}

// closedForGood returns why the session must not be opened again.
func (rq *request) closedForGood() error {
	late := rq.late.Load()
	switch {
	case late != nil: // the answer says that something is lost
		return *late
	case rq.err != nil && !rq.begun:
		return fmt.Errorf("after a commit that failed: %w", rq.err)
	case rq.origin == ended:
		return gone("session " + rq.knownID() + " was ended by this request")
	}
	return nil
}

// takeAgain reads the record that is there now, and locks it as the mode wants.
func (rq *request) takeAgain(ctx context.Context) (records.Record, error) {
	if rq.origin != locked && rq.origin != readOnly && rq.origin != optimistic {
		return records.Record{}, nil
	}
	rq.waited = 0
	record, err := rq.take(ctx, rq.knownID())
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%w: %w", gone("the session is over: it has timed out, or was ended more than a minute ago"), err)
	}
	return record, err
}

// commitReopened commits what the handler has left open after its answer has begun, and cuts the
// answer off where that, or the last commit before, has failed.
func (rw *response) commitReopened() {
	rq := &rw.request
	rw.discardFailed()
	if err := rq.commit(handlerEnd); err != nil {
		rq.logFailure(err)
		rw.cutOff()
	}
}

// wait arranges for cancel to be called when the handler returns. A handlerContext ends then, too,
// but also for reasons that need not concern one who waits, such as a client that has gone away.
func (c *handlerContext) wait(cancel context.CancelCauseFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.returned {
		return errReturned
	}
	c.waiting = cancel
	return nil
}

func (c *handlerContext) stopWaiting() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = nil
}
