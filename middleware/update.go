package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

var (
	errNoID    = errors.New("middleware: this is not the public ID of a session, which has 22 characters of base64url, or 16 characters, a dot and 11 characters: see Session.ID")
	errUnknown = fmt.Errorf("%w: %w", errNoID, store.ErrNotFound)
	errSelf    = errors.New("middleware: Update would wait for itself, since its caller holds the session: change that session, or Commit it before")
	errCookie  = errors.New("middleware: Update cannot give the session a new ID, nor an end by Remember, since there is no response that could set the cookie")
	errInside  = errors.New("middleware: in Update the session is saved when the function returns nil")
)

// Update changes the session with a public ID. It is for jobs, webhooks and other code that runs without a
// request of the session's visitor. Update waits for the session as a request does, at most for LockWait or
// until ctx ends. Then it calls f with the session locked; other requests wait meanwhile.
//
// If f returns nil, its changes are saved before Update returns. If Update returns nil, the changes are stored.
// If Update returns an error, they are not stored, except that with store.ErrUnavailable they may be stored. If
// f returns an error, nothing is saved, and Update returns that error. If f panics, nothing is saved, and the
// panic goes on. f may Destroy the session. It may not call Login, Renew or Remember, since no cookie can be set, nor Commit
// or Reopen.
//
// The error wraps store.ErrNotFound if the ID is unknown or malformed, or its session has expired; store.ErrGone if
// the session was ended less than a minute ago; store.ErrMoved if it got a new ID less than a minute ago; or any error
// that a request can fail with: see [Status]. Options.OnCorrupt is not called.
//
// Update does not log its error: log it.
//
// Update does not count as activity and does not extend the idle timeout, unless that is about as short as the store's
// Lease: see P12 in PROMISES.md. The session does not expire while Update waits for it or holds it. If f takes longer
// than MaxHold, the session is not saved. Session.Expires cannot know when the visitor was last active, and returns the
// latest time possible.
//
// If the session is ended while Update holds it, ctx does not end, unless it is the context of a handler that has opened
// the session. Nothing is saved then.
//
// In a handler that holds the same session, Update would wait for itself. If ctx is derived from the request's
// context, Update returns an error at once. Otherwise, and in the function of another Update of the session, it
// waits for LockWait, and fails with store.ErrTimeout. f must not use the session or the ResponseWriter of the request
// that calls Update: if that request calls Reopen meanwhile, both wait for LockWait.
func (s *Sessions) Update(ctx context.Context, id string, f func(*session.Session) error) error {
	if !isID(id) {
		return errUnknown
	}
	if s.heldIn(ctx, id) {
		return errSelf
	}
	seen := s.observe(ctx, time.Now())
	if seen != nil {
		ctx = seen
		defer seen.finish()
	}
	u := &update{sessions: s, id: id, seen: seen}
	terms := s.terms
	terms.Quiet, terms.Label = true, "Update"
	hold, _, err := s.take(ctx, id, terms, seen)
	seen.updates(id)
	u.hold = hold
	if hold != nil {
		defer u.releaseUnsaved(ctx) // also after a panic
	}
	if err == nil {
		u.record = hold.Record
		u.session, err = s.sessionOf(u.record, u, false, nil)
	}
	if err != nil {
		seen.failed(err)
		return err
	}
	seen.opened(locked)
	seen.abandoned() // noted now, so that it holds if f fails or panics; committed replaces it
	seen.runs()
	err = f(u.session)
	if err != nil {
		return err
	}
	region := seen.region("commit")
	do, err := u.saveUpdate(ctx)
	region.end()
	if err != nil {
		seen.failed(err)
	}
	seen.committed(do, err, u.hold != nil)
	if err == nil && do == destroy {
		s.happened(ctx, endOf(id, "destroy"))
	}
	return err
}

// An update is a session that Update has locked, and its keep.Keeper.
type update struct {
	sessions *Sessions
	id       string
	seen     *observation   // by observers; or nil
	hold     *records.Hold  // nil once the lock is released
	record   records.Record // as it was read
	session  *session.Session
}

// saveUpdate saves what f has done, and releases the lock.
func (u *update) saveUpdate(ctx context.Context) (done action, _ error) {
	change, err := keep.Close(u.session, "Update")
	hold := u.hold
	if change.Dropped != "" {
		u.logUpdate(slog.LevelWarn, "dropped", droppedValue, keyAttr(change.Dropped))
	}
	if change.DroppedLogin {
		u.logUpdate(slog.LevelWarn, "dropped", droppedLogin)
	}
	switch {
	case err != nil:
		return leave, err
	case (change.Renewed || change.Remembered) && !change.Destroyed: // Login is a Renewed, too
		return leave, errCookie
	}
	u.hold = nil
	switch {
	case change.Destroyed:
		back := u.sessions.stepAside(ctx)
		if err := hold.Destroy(ctx); err != nil {
			back()
			return destroy, err
		}
		back(u.id)
		u.seen.did(endOf(u.id, "destroy"))
		return destroy, nil
	case change.Changed:
		return save, hold.SaveContent(ctx, change.Snapshot)
	default:
		return touch, hold.Touch(ctx)
	}
}

// releaseUnsaved releases the lock, unless saveUpdate has done so, and closes the session: if a goroutine of f
// changes the session later, that is a late change.
func (u *update) releaseUnsaved(ctx context.Context) {
	if u.hold == nil {
		return
	}
	if u.session != nil {
		_, _ = keep.Close(u.session, "Update")
	}
	u.hold.Release(ctx)
}

// SessionID implements keep.Keeper.
func (u *update) SessionID() string { return u.id }

// SessionExpires implements keep.Keeper. It returns the latest time possible, as if the visitor were active
// now.
func (u *update) SessionExpires(c keep.Change) time.Time {
	record := u.record
	record.Own = ownTimeouts(record.Own, c)
	return u.sessions.terms.Expires(record, time.Now())
}

// CommitSession implements keep.Keeper.
func (u *update) CommitSession(context.Context) error { return errInside }

// ReopenSession implements keep.Keeper.
func (u *update) ReopenSession(context.Context) error { return errInside }

// ChangedLate implements keep.Keeper.
func (u *update) ChangedLate(method, key, sealed string) {
	u.logUpdate(slog.LevelError, "late", "session changed after it was saved; the change is lost",
		slog.String("call", method), keyAttr(key), slog.String("saved_by", sealed),
		slog.String("rule", "Update saves the session when its function returns: change it before"))
}

func (u *update) logUpdate(level slog.Level, kind, message string, attrs ...slog.Attr) {
	u.sessions.logLine(context.Background(), level, kind, message, func() []slog.Attr {
		return append([]slog.Attr{slog.String("kind", kind), slog.String("session", u.id)}, attrs...)
	})
}
