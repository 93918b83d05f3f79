package middleware

import (
	"context"
	"log/slog"
)

// A keeper is a request as its session sees it.
type keeper struct{ *request }

// SessionID implements [session.Keeper].
func (k keeper) SessionID() string { return k.publicID() }

// CommitSession implements [session.Keeper]. The commit is bounded by the store's
// time-out, not by a context: it does not end with the request.
func (k keeper) CommitSession(context.Context) error { return k.commit("Commit") }

// ChangedLate implements [session.Keeper]. The change cannot be saved any more, and
// must not be lost in silence.
func (k keeper) ChangedLate(method, key, sealed string) {
	rq := k.request
	rq.late.Store(true)
	if conn := rq.hijacked.Load(); conn != nil {
		_ = (*conn).Close() // the one way to cut this answer off
	}
	rq.sessions.log(rq.base.Context(), slog.LevelError, "session changed after it was saved; the answer is cut off",
		slog.String("session", rq.publicID()), slog.String("call", method), slog.String("key", key), slog.String("saved_by", sealed),
		slog.String("rule", "a session is saved before the first byte of the answer: change it before "+sealed))
}
