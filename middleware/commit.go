package middleware

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/session"
)

// A commit takes what the handler has done to its session to Redis:
//
//	closeSession  asks the session what has changed
//	decide        says what that means (commit_action.go)
//	carryOut      does it: it writes the record, and releases the lock
//
// Commits that give the session another ID, or end it, are in commit_id.go; commits without a lock, in optimistic.go.
type commit struct {
	rq     *request
	by     string      // why the commit is made now
	change keep.Change // what the handler has done
	do     action      // what decide has said; or destroy, if changeID has found that the session is too old
}

// commit saves the session and releases its lock when it is first called, and after each Reopen. Any other
// call returns the error of the last commit. begins: the response begins if the commit succeeds.
func (rq *request) commit(by string, begins bool) error {
	c := commit{rq: rq, by: by}
	rq.mu.Lock()
	defer func() {
		if rq.hold != nil { // it failed, or panicked
			rq.releaseLock()
		}
		rq.unlockAndCallHooks()
		if by != handlerEnd {
			rq.seen.tell()
		}
	}()
	if !rq.committed {
		rq.committed = true
		if rq.session != nil { // in mode Lazy it may never have been started
			rq.err = errAbandoned // if the Logger panics, or Label
			region := rq.seen.region("commit")
			err := c.closeSession()
			if err == nil {
				err = c.carryOut()
			}
			rq.err = err
			region.end()
			rq.seen.committed(c.do, err, rq.hold != nil)
			if late := rq.late.Load(); late != nil && err == nil { // a change that is not stored, and whose error is the response
				rq.seen.failed(*late)
			}
			rq.commitFailed.Store(err != nil && !rq.begun)
		}
	}
	rq.begun = rq.begun || begins && rq.err == nil
	return rq.err
}

// unlockAndCallHooks unlocks mu first, since a hook may use the request.
func (rq *request) unlockAndCallHooks() {
	var events []idEvent
	if rq.idChanges != nil {
		events, rq.idChanges.events = rq.idChanges.events, nil
	}
	if rq.hold == nil {
		rq.holds.Store(0)
	}
	rq.mu.Unlock()
	for _, e := range events {
		rq.sessions.happened(cmp.Or[context.Context](rq.lazy, &rq.context), e)
	}
}

const (
	droppedValue = "a value that was set after Destroy is dropped"
	droppedLogin = "a login after Destroy is dropped: call Clear instead of Destroy"
)

// closeSession closes the session, which says what the handler has done to it. The error says why the changes
// must not be saved.
func (c *commit) closeSession() (err error) {
	rq := c.rq
	c.change, err = keep.Close(rq.session, c.by)
	if errors.Is(err, session.ErrReadOnly) {
		err = fmt.Errorf("middleware: %s: %w", excerpt.Of(rq.label()), err)
	}
	if c.change.Dropped != "" {
		rq.log(slog.LevelWarn, "dropped", droppedValue, keyAttr(c.change.Dropped))
	}
	if c.change.DroppedLogin {
		rq.log(slog.LevelWarn, "dropped", droppedLogin)
	}
	if err == nil && (c.change.Changed || c.change.Renewed || c.change.Destroyed) {
		// If the request's own deadline has passed, the client has got a failure already, for example from an
		// http.TimeoutHandler. A client that has gone away cancels the context instead. A deadline that passes
		// during the commit is not noticed.
		if ended := rq.base.Context().Err(); errors.Is(ended, context.DeadlineExceeded) {
			err = fmt.Errorf("middleware: the request's deadline had passed, so its session was not saved: %w", ended)
		}
	}
	return err
}

// carryOut does what decide says.
func (c *commit) carryOut() error {
	// The store does not break off a commit when the context ends. So the effect of a request is saved even
	// if its client has gone away.
	rq, ctx := c.rq, c.rq.storeContext()
	hold := rq.hold
	c.do = decide(rq.situation(c.change.User), c.change)
	switch c.do {
	case leave:
		return nil
	case touch:
		rq.hold = nil // the lock is released even if this fails
		return hold.Touch(ctx)
	case save:
		if c.change.Remembered {
			return c.remember(ctx)
		}
		rq.hold = nil
		err := hold.SaveContent(ctx, c.change.Snapshot)
		rq.saved = rq.saved || err == nil
		return err
	case saveUnlocked:
		return c.saveUnlocked(ctx)
	default: // a separate function, since its large stack frame would cost the other cases time
		return c.changeID(context.WithoutCancel(ctx))
	}
}

// markEnded notes that this request has ended the session.
func (rq *request) markEnded() {
	rq.origin = ended
	rq.identity.setEnded()
}

// abandon releases the lock and saves nothing, unless the session was committed before. by says why. It returns the error
// of the last commit, if that has failed and the handler does not run again.
func (rq *request) abandon(by string) (failed error) {
	rq.mu.Lock()
	defer rq.unlockAndCallHooks() // for what the opening has ended
	switch {
	case !rq.committed, rq.err == errAbandoned:
		rq.committed, rq.err = true, errAbandoned
		rq.seen.abandoned()
	case rq.err != nil && rq.err != errDiscarded: // the handler has panicked since its commit has failed
		failed = rq.err
		rq.seen.failed(failed)
	}
	if rq.session != nil {
		_, _ = keep.Close(rq.session, by) // closes it; its changes are not wanted
	}
	rq.releaseLock()
	return failed
}

// releaseLock is called with mu held.
func (rq *request) releaseLock() {
	if hold := rq.hold; hold != nil {
		rq.hold = nil
		rq.holds.Store(0)
		hold.Release(rq.storeContext())
		rq.seen.released()
	}
}
