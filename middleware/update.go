package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/a2139e8d/latchkey/internal/keep"
	"github.com/a2139e8d/latchkey/internal/records"
	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

var (
	errNoID   = errors.New("middleware: this is not the public id of a session, which has 22 characters of base64url, or 16, a dot and 11: see Session.ID")
	errSelf   = errors.New("middleware: Update would wait for itself, since its caller holds the session: change that one, or Commit it before")
	errCookie = errors.New("middleware: Update cannot give the session a new id, nor an end by Remember, since it has no answer that could set the cookie")
	errInside = errors.New("middleware: in Update the session is saved when the function returns nil")
)

// Update changes the session with a public id, for jobs, webhooks and whatever else has no request
// of the session's visitor. It waits for the session as a request does, at most for LockWait or
// until ctx ends, and calls f with it, while it has its lock; other requests wait meanwhile.
//
// What f has done is saved when it returns nil, in any case before Update does. Then nil means that
// it is stored; an error, that it is not, unless it wraps store.ErrUnavailable. If f returns an
// error, nothing is saved, and Update returns that error; if f panics, nothing is saved, and the
// panic goes on. f may Destroy the session, but neither Renew nor Remember it, since no cookie can
// be set.
//
// The error wraps store.ErrNotFound where the id is unknown or its session has timed out,
// store.ErrGone where the session was ended less than a minute ago, and else what a request is
// refused with: see [Status]. Options.OnCorrupt is not asked.
//
// An Update is no use of the session by its visitor: the idle timeout goes on as if nobody had
// come, but the session does not run out while Update waits for it or has it. If f takes longer
// than MaxHold, the session is not saved. Session.Expires cannot know when the visitor has come last,
// and returns the latest time that it can be.
//
// In a handler that holds the same session Update would wait for itself, and returns an error at
// once, if ctx is derived from the request's. Otherwise, and in the function of another Update of
// the session, it waits for LockWait, and fails with store.ErrTimeout.
func (s *Sessions) Update(ctx context.Context, id string, f func(*session.Session) error) error {
	if !isID(id) {
		return errNoID
	}
	if s.held(ctx, id) {
		return errSelf
	}
	u := &update{sessions: s, id: id}
	terms := s.terms
	terms.Quiet, terms.Label = true, "Update"
	var err error
	if u.hold, err = s.store.Take(ctx, id, terms); u.hold != nil {
		defer u.release(ctx) // where nothing else has, also after a panic
	}
	if err == nil {
		err = u.open()
	}
	if err == nil {
		err = f(u.session)
	}
	if err != nil {
		return err
	}
	return u.commit(ctx)
}

// An update is a session that Update has taken, and its keep.Keeper.
type update struct {
	sessions *Sessions
	id       string
	hold     *records.Hold  // nil once it is given back
	record   records.Record // as it was taken
	session  *session.Session
}

func (u *update) open() error {
	u.record = u.hold.Record
	config := u.sessions.config(u.record)
	config.Keeper = u
	u.session = new(session.Session)
	if err := keep.Open(u.session, config); err != nil {
		return fmt.Errorf("middleware: session %s: %w: %w", u.id, store.ErrCorrupt, err)
	}
	return nil
}

// commit saves what f has done.
func (u *update) commit(ctx context.Context) error {
	change, err := keep.Close(u.session, "Update")
	hold := u.hold
	if change.Dropped != "" {
		u.log(slog.LevelWarn, "dropped", "a value that was set after Destroy is dropped", keyAttr(change.Dropped))
	}
	if change.DroppedLogin {
		u.log(slog.LevelWarn, "dropped", droppedLogin)
	}
	switch {
	case err != nil:
		return err
	case (change.Renewed || change.Remembered) && !change.Destroyed: // Login is a Renewed, too
		return errCookie
	}
	u.hold = nil
	switch {
	case change.Destroyed:
		if err := hold.Destroy(ctx); err != nil {
			return err
		}
		u.sessions.options.Hooks.call(context.WithoutCancel(ctx), event{do: destroy, old: u.id})
		return nil
	case change.Changed:
		return hold.SaveContent(ctx, change.Snapshot)
	default:
		return hold.Touch(ctx)
	}
}

// release gives the session back unless it was committed, and closes it: what a goroutine of f
// does to it later is a late change.
func (u *update) release(ctx context.Context) {
	if u.hold == nil {
		return
	}
	if u.session != nil {
		_, _ = keep.Close(u.session, "Update")
	}
	u.hold.Release(context.WithoutCancel(ctx))
}

// SessionID implements keep.Keeper.
func (u *update) SessionID() string { return u.id }

// SessionExpires implements keep.Keeper. It is the latest time that it can be: as if the visitor had
// come just now.
func (u *update) SessionExpires(renewed, _, remembered bool, d time.Duration) time.Time {
	record := u.record
	record.Own = changed(record.Own, renewed, remembered, d)
	return u.sessions.terms.Expires(record, time.Now())
}

// CommitSession implements keep.Keeper.
func (u *update) CommitSession(context.Context) error { return errInside }

// ReopenSession implements keep.Keeper.
func (u *update) ReopenSession(context.Context) error { return errInside }

// ChangedLate implements keep.Keeper.
func (u *update) ChangedLate(method, key, sealed string) {
	u.log(slog.LevelError, "late", "session changed after it was saved; the change is lost",
		slog.String("call", method), keyAttr(key), slog.String("saved_by", sealed),
		slog.String("rule", "Update saves the session when its function returns: change it before"))
}

func (u *update) log(level slog.Level, kind, message string, attrs ...slog.Attr) {
	u.sessions.log(context.Background(), level, kind, message, func() []slog.Attr {
		return append([]slog.Attr{slog.String("kind", kind), slog.String("session", u.id)}, attrs...)
	})
}

// isID reports whether id can be a session's public id.
func isID(id string) bool {
	tag, own, ofUser := strings.Cut(id, ".")
	if ofUser {
		return len(tag) == 16 && len(own) == 11 && isBase64(tag+own)
	}
	return len(id) == 22 && isBase64(id) && strings.IndexByte("AQgw", id[21]) >= 0 // 16 bytes leave 4 bits
}

func isBase64(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// held reports whether ctx is that of a handler that holds the session.
func (s *Sessions) held(ctx context.Context, id string) bool {
	outer, _ := ctx.Value(requestKey{}).(*request)
	for ; outer != nil; outer = outer.outer {
		if outer.sessions.store == s.store && outer.holds(id) {
			return true
		}
	}
	return false
}

// holds reports whether the request has the lock of the session with this id. If it is just being
// taken or given back, it waits for the outcome.
func (rq *request) holds(id string) bool {
	rq.mu.Lock()
	defer rq.mu.Unlock()
	return rq.hold != nil && rq.knownID() == id
}
