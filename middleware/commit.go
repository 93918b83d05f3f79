package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/a2139e8d/latchkey/internal/excerpt"
	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// commit saves the session and releases its lock the first time it is called, and after each
// Reopen. Else it returns the error of the last time. by names what made it necessary.
func (rq *request) commit(by string) error {
	rq.mu.Lock()
	var done event
	defer rq.leaveCommit(&done)
	return rq.commitOpen(by, &done)
}

// commitToAnswer is commit for an answer that begins if that succeeds.
func (rq *request) commitToAnswer(by string) error {
	rq.mu.Lock()
	var done event
	defer rq.leaveCommit(&done)
	err := rq.commitOpen(by, &done)
	rq.begun = rq.begun || err == nil
	return err
}

const droppedLogin = "a login after Destroy is dropped: call Clear instead of Destroy"

// commitOpen is commit, called with mu held. It notes in done what hooks are to be called for.
func (rq *request) commitOpen(by string, done *event) error {
	if rq.committed {
		return rq.err
	}
	rq.committed = true
	if rq.session == nil {
		return nil // Lazy, and never started
	}
	rq.err = errAbandoned // if the Logger panics, or Label
	defer rq.unlock()     // where carryOut has not
	change, err := keep.Close(rq.session, by)
	if errors.Is(err, session.ErrReadOnly) {
		err = fmt.Errorf("middleware: %s: %w", excerpt.Of(rq.label()), err)
	}
	if change.Dropped != "" {
		rq.log(slog.LevelWarn, "dropped", "a value that was set after Destroy is dropped: call Clear, Renew and Set instead",
			keyAttr(change.Dropped))
	}
	if change.DroppedLogin {
		rq.log(slog.LevelWarn, "dropped", droppedLogin)
	}
	if err == nil {
		err = rq.overdue(change)
	}
	if err == nil {
		err = rq.carryOut(by, change, done)
	}
	rq.commitFailed.Store(err != nil && !rq.begun)
	rq.err = err
	return err
}

// overdue refuses a change of a request whose own deadline is over: what set it, such as an
// http.TimeoutHandler, has answered already, with a failure. This does not concern a client that
// has gone away, which cancels the context. A deadline that passes during the commit is not seen.
func (rq *request) overdue(change keep.Change) error {
	if !change.Changed && !change.Renewed && !change.Destroyed {
		return nil // there is nothing to lose, and the answer may be wanted
	}
	if ended := rq.base.Context().Err(); errors.Is(ended, context.DeadlineExceeded) {
		return fmt.Errorf("middleware: the request's deadline was over, so its session was not saved: %w", ended)
	}
	return nil
}

// carryOut does what decide says.
func (rq *request) carryOut(by string, change keep.Change, done *event) error {
	// The store does not break off a commit when the context ends, so if the client has gone away,
	// the effect of its request is saved nevertheless.
	ctx := rq.base.Context()
	do := decide(rq.origin, change)
	if do == save && rq.hold.Record.User == "" && isOfUser(rq.knownID()) {
		do = renew // the record was replaced, and whose the session was is lost with it
	}
	switch do {
	case leave:
		if change.Destroyed {
			rq.end()
		}
		return nil
	case touch:
		return rq.giveBack().Touch(ctx)
	case save:
		if change.Remembered {
			return rq.remember(ctx, change)
		}
		err := rq.giveBack().SaveContent(ctx, change.Snapshot)
		rq.saved = rq.saved || err == nil
		return err
	case settle:
		return rq.settle(by, change, done)
	default: // in a function of its own, whose large frame the others can do without
		return rq.changeID(context.WithoutCancel(ctx), by, do, change, done)
	}
}

// giveBack returns the hold to be given back: whatever does that releases the lock, even if it fails.
func (rq *request) giveBack() *records.Hold {
	hold := rq.hold
	rq.hold = nil
	return hold
}

// changeID does what begins or ends an id, and so changes the cookie.
func (rq *request) changeID(
	ctx context.Context, by string, do action, change keep.Change, done *event,
) (err error) {
	s := rq.sessions
	var cookie *http.Cookie
	switch do {
	case forget:
		cookie = s.cookies.expired()
	case destroy:
		cookie, err = s.cookies.expired(), rq.giveBack().Destroy(ctx)
		if errors.Is(err, store.ErrGone) { // by EndAll, say: that is what was wanted
			do, err = leave, nil
		}
	case refuse:
		if err = fmt.Errorf("middleware: session %s: %w", rq.SessionID(), store.ErrGone); s.cookies.token != nil {
			err = fmt.Errorf("%w: %w", errNoAccess, err)
		}
		return err
	default:
		return rq.beginID(ctx, by, do, change, done)
	}
	if err == nil {
		rq.cookie, rq.saved = cookie, true
		rq.end()
		*done = event{do: do, old: rq.knownID()}
	}
	return err
}

// beginID does what begins an id, of a new session or of the one that is held.
func (rq *request) beginID(
	ctx context.Context, by string, do action, change keep.Change, done *event,
) error {
	s := rq.sessions
	switch byToken := s.cookies.token != nil; {
	case byToken && by == handlerEnd && do == create && !change.Renewed:
		return fmt.Errorf("%w: %w", errNoAccess, errNobody) // which is a mistake of the client, or of the handler
	case byToken && by == handlerEnd:
		return errNobody
	case !byToken && rq.begun:
		return errCookieLate
	}
	var key cookieKey
	if do == create {
		_ = rq.SessionID() // which the handler may know already
		key.secret = rq.secret
	} else {
		key.secret = secret.New()
	}
	record := records.Record{Created: time.Now(), Own: s.terms.Guest()}
	if do == renew {
		record = rq.hold.Record
	}
	rq.give(&record, change.User)
	if change.User != "" {
		ctx = records.WithArrival(ctx, rq.arrival())
	}
	if record.User != "" {
		tag := s.store.Tag(record.User)
		key.tag = tag[:]
	}
	id := key.id()
	record.Own = changed(record.Own, change.Renewed, change.Remembered, change.Remember)
	s.beginAnew(&record, change.User != "")
	cookie, err := s.cookies.issue(key, record.Own)
	switch {
	case err != nil:
	case do == renew:
		hold := rq.giveBack()
		hold.Record.Created, hold.Record.Own = record.Created, record.Own
		hold.Record.User, hold.Record.Device = record.User, record.Device
		err = hold.Renew(ctx, id, change.Data())
		record.Own = hold.Record.Own // of which the new id does not keep all
	default:
		record.Data = change.Data()
		err = s.store.CreateRecord(ctx, id, record, s.terms)
	}
	if err == nil {
		*done = event{do, rq.knownID(), id}
		rq.identify(id)
		rq.cookie, rq.origin, rq.saved = cookie, locked, true
		rq.note(record.Created, record.Own)
	}
	return err
}

// abandon gives up after a panic.
func (rq *request) abandon() { rq.giveUp("a panic") }

// giveUp releases the lock and saves nothing, unless the session was committed before. by is why.
func (rq *request) giveUp(by string) {
	rq.mu.Lock()
	defer rq.mu.Unlock()
	if !rq.committed {
		rq.committed, rq.err = true, errAbandoned
	}
	if rq.session != nil {
		_, _ = keep.Close(rq.session, by) // closes it; its changes are not wanted
	}
	rq.unlock()
}

// unlock is called with mu held.
func (rq *request) unlock() {
	if rq.hold != nil {
		rq.giveBack().Release(context.WithoutCancel(rq.base.Context()))
	}
}
