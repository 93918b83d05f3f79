package middleware

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// Status returns the HTTP status for an error of the session:
//
//   - 503 where another try may succeed: the session was busy for too long, its
//     lock was lost, Redis is away, or the client is;
//   - 409 for a write to a session that another request has ended;
//   - 500 for the rest, which are mistakes: a value that cannot be encoded, a
//     session that is too large, a record that cannot be read.
func Status(err error) int {
	switch {
	case errors.Is(err, store.ErrTimeout),
		errors.Is(err, store.ErrTooManyWaiters),
		errors.Is(err, store.ErrLost),
		errors.Is(err, store.ErrUnavailable),
		errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	case errors.Is(err, store.ErrGone):
		return http.StatusConflict
	default:
		return http.StatusInternalServerError
	}
}

// answer logs err and answers the request with it. Nothing of an answer may have been sent yet.
func (s *Sessions) answer(w http.ResponseWriter, r *http.Request, id string, err error) {
	status := Status(err)
	s.logFailure(r, id, err)
	forbidCaching(w.Header())
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1") // seconds
	}
	if s.options.OnError != nil {
		s.options.OnError(w, r, err)
		return
	}
	http.Error(w, sentence(status, err), status)
}

// sentence is all that the client learns of an error.
func sentence(status int, err error) string {
	switch {
	case errors.Is(err, store.ErrUnavailable): // it may have been saved all the same
		return "The session is not available just now. Please try again."
	case status == http.StatusServiceUnavailable:
		return "The session is not available just now. Nothing was saved. Please try again."
	case errors.Is(err, session.ErrClosed):
		return "Not all of this was saved. Please check before you try again."
	case status == http.StatusConflict:
		return "The session was ended by another request. Nothing was saved. Please start again."
	default:
		return "The session could not be used. Nothing was saved."
	}
}

// levelOf returns the level to log err at. A client that went away is nobody's
// fault, and a logout in another tab is a fact of life.
func levelOf(err error) slog.Level {
	switch {
	case errors.Is(err, context.Canceled):
		return slog.LevelDebug
	case errors.Is(err, store.ErrGone):
		return slog.LevelInfo
	case errors.Is(err, store.ErrTimeout), errors.Is(err, store.ErrTooManyWaiters):
		return slog.LevelWarn
	default:
		return slog.LevelError
	}
}

func (s *Sessions) logFailure(r *http.Request, id string, err error) {
	s.log(r.Context(), levelOf(err), "session failed",
		slog.String("session", id), slog.Int("status", Status(err)), slog.String("method", r.Method), slog.Any("error", err))
}

func (s *Sessions) log(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	cmp.Or(s.options.Logger, slog.Default()).LogAttrs(ctx, level, "latchkey: "+message, attrs...)
}
