package middleware

import (
	"context"
	"log/slog"

	"github.com/a2139e8d/latchkey/internal/keep"
)

// A request is its session's keep.Keeper. The third method is in request.go.
var _ keep.Keeper = (*request)(nil)

// CommitSession commits. That is bounded by the store's timeout, not by a context:
// it does not end with the request.
func (rq *request) CommitSession(context.Context) error { return rq.commit("Commit") }

// ChangedLate reports a change that cannot be saved any more, and must not be lost
// in silence.
func (rq *request) ChangedLate(method, key, sealed string) {
	rq.late.Store(true)
	if conn := rq.hijacked.Load(); conn != nil {
		_ = (*conn).Close() // the one way to cut this answer off
	}
	rq.sessions.log(rq.base.Context(), slog.LevelError, "session changed after it was saved; the answer is cut off",
		slog.String("session", rq.SessionID()), slog.String("call", method), slog.String("key", key), slog.String("saved_by", sealed),
		slog.String("rule", "a session is saved before the first byte of the answer: change it before "+sealed))
}
