package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/a2139e8d/latchkey/internal/secret"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// commit saves the session and releases its lock the first time it is called, and
// returns the error of that every time. by names what made it necessary.
func (rq *request) commit(by string) error {
	rq.mu.Lock()
	defer rq.mu.Unlock()
	if rq.committed {
		return rq.err
	}
	rq.committed = true
	if rq.session == nil {
		return nil // Lazy, and never started
	}
	rq.err = errAbandoned // if the Logger panics, or Label
	defer rq.unlock()     // where carryOut has not
	change, err := rq.session.Seal(by)
	if errors.Is(err, session.ErrReadOnly) {
		err = fmt.Errorf("middleware: %s: %w", rq.label(), err)
	}
	if change.Dropped != "" {
		rq.log(slog.LevelWarn, "dropped", "a value that was set after Destroy is dropped: call Clear, Renew and Set instead",
			slog.String("key", change.Dropped))
	}
	if err == nil {
		err = rq.overdue(change)
	}
	if err == nil {
		err = rq.carryOut(change)
	}
	rq.commitFailed.Store(err != nil)
	rq.err = err
	return err
}

// overdue refuses a change of a request whose own deadline is over: what set it, such as an
// http.TimeoutHandler, has answered already, with a failure. This does not concern a client that
// has gone away, which cancels the context. A deadline that passes during the commit is not seen.
func (rq *request) overdue(change session.Change) error {
	if !change.Changed && !change.Renewed && !change.Destroyed {
		return nil // there is nothing to lose, and the answer may be wanted
	}
	if ended := rq.base.Context().Err(); errors.Is(ended, context.DeadlineExceeded) {
		return fmt.Errorf("middleware: the request's deadline was over, so its session was not saved: %w", ended)
	}
	return nil
}

// carryOut does what decide says.
func (rq *request) carryOut(change session.Change) error {
	// The store does not break off a commit when the context ends, so if the client has gone away,
	// the effect of its request is saved nevertheless.
	ctx := rq.base.Context()
	switch do := decide(rq.origin, change); do {
	case leave:
		return nil
	case touch:
		return rq.giveBack().Touch(ctx)
	case save:
		return rq.giveBack().SaveContent(ctx, change.Snapshot)
	default: // in a function of its own, whose large frame the others can do without
		return rq.changeID(context.WithoutCancel(ctx), do, change)
	}
}

// giveBack returns the hold to be given back: whatever does that releases the lock, even if it fails.
func (rq *request) giveBack() *store.Hold {
	hold := rq.hold
	rq.hold = nil
	return hold
}

// changeID does what begins or ends an id, and so changes the cookie.
func (rq *request) changeID(ctx context.Context, do action, change session.Change) (err error) {
	s, hold := rq.sessions, rq.giveBack()
	switch do {
	case destroy:
		rq.cookie = s.cookies.expired()
		return hold.Destroy(ctx)
	case forget:
		rq.cookie = s.cookies.expired()
	case refuse:
		return fmt.Errorf("middleware: session %s: %w", rq.SessionID(), store.ErrGone)
	case create:
		id := rq.SessionID()
		if rq.cookie, err = s.cookies.issue(rq.secret); err == nil {
			err = s.store.Create(ctx, id, change.Data(), s.terms)
		}
	case anew:
		begun := secret.New()
		if rq.cookie, err = s.cookies.issue(begun); err == nil {
			err = s.store.Create(ctx, begun.ID(), change.Data(), s.terms)
		}
		if err == nil {
			rq.identify(begun.ID())
		}
	case renew:
		renewed := secret.New()
		if rq.cookie, err = s.cookies.issue(renewed); err != nil {
			hold.Release(ctx)
		} else if err = hold.Renew(ctx, renewed.ID(), change.Data()); err == nil {
			rq.identify(renewed.ID())
		}
	}
	return err
}

// abandon releases the lock and saves nothing, unless the session was committed before.
func (rq *request) abandon() {
	rq.mu.Lock()
	defer rq.mu.Unlock()
	if !rq.committed {
		rq.committed, rq.err = true, errAbandoned
	}
	if rq.session != nil {
		_, _ = rq.session.Seal("a panic") // closes it; its changes are not wanted
	}
	rq.unlock()
}

// unlock is called with mu held.
func (rq *request) unlock() {
	if rq.hold != nil {
		rq.hold.Release(context.WithoutCancel(rq.base.Context()))
		rq.hold = nil
	}
}
