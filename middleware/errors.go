package middleware

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/a2139e8d/latchkey/session"
	"github.com/a2139e8d/latchkey/store"
)

// A rule says how an error is logged, and which status it gets.
type rule struct {
	err    error
	kind   string // in the log
	status int
	level  slog.Level
}

// rules are in the order in which they are tried, since an error may wrap several of their errors. The level is
// low for events that are no fault, such as a client that has gone away, or a logout in another tab.
var rules = []rule{
	{session.ErrEnded, "gone", http.StatusConflict, slog.LevelInfo}, // the cause of a context that is canceled
	{errBody, "canceled", http.StatusBadRequest, slog.LevelDebug},
	{context.Canceled, "canceled", http.StatusServiceUnavailable, slog.LevelDebug},
	{errNoAccess, "no_access", http.StatusUnauthorized, slog.LevelInfo},          // also if it wraps ErrGone
	{store.ErrTimeout, "timeout", http.StatusServiceUnavailable, slog.LevelWarn}, // also if its last try got no reply in the rest of the time
	{store.ErrTooManyWaiters, "too_many_waiters", http.StatusServiceUnavailable, slog.LevelWarn},
	{store.ErrUnavailable, "unavailable", http.StatusServiceUnavailable, slog.LevelError}, // also if a repetition found the session gone
	{store.ErrGone, "gone", http.StatusConflict, slog.LevelInfo},
	{store.ErrNotFound, "not_found", http.StatusNotFound, slog.LevelInfo},
	{store.ErrTooManySessions, "too_many_sessions", http.StatusForbidden, slog.LevelInfo},
	{store.ErrConflict, "conflict", http.StatusServiceUnavailable, slog.LevelWarn},
	{store.ErrLost, "lost", http.StatusServiceUnavailable, slog.LevelError},
	{context.DeadlineExceeded, "deadline", http.StatusServiceUnavailable, slog.LevelError},
	{store.ErrTooLarge, "too_large", http.StatusInternalServerError, slog.LevelError},
	{store.ErrCorrupt, "corrupt", http.StatusInternalServerError, slog.LevelError},
	{session.ErrReadOnly, "read_only", http.StatusInternalServerError, slog.LevelError},
	{session.ErrClosed, "late", http.StatusInternalServerError, slog.LevelError},
}

func ruleOf(err error) rule {
	for _, r := range rules {
		if errors.Is(err, r.err) {
			return r
		}
	}
	return rule{err, "other", http.StatusInternalServerError, slog.LevelError}
}

// Status returns the HTTP status for an error of the session:
//
//   - 503 if a retry may succeed: the session was busy for too long, its lock was lost, another request has
//     changed it, Redis is unavailable, the client has gone away, or the request's own deadline has passed;
//   - 409 for a write in the background with an ID from before a login or Renew, for a login that EndAll has
//     overtaken, and for a session that has ended while the request had it open: session.ErrEnded, too;
//   - 401 with Options.Token: for a write of a request that has no token, or whose token leads to no session;
//   - 404 for store.ErrNotFound, which End, Peek and Update return for an ID that leads to no session.
//     Options.OnError is never called with store.ErrNotFound: a request without a session begins a new session;
//   - 403 for a login of a user who has too many sessions: see Options.MaxSessions;
//   - 400 for a request whose body did not arrive whole;
//   - 500 for all other errors, which are mistakes: a value that cannot be encoded, a change that
//     comes too late, a session that is too large, a record that cannot be read.
func Status(err error) int { return ruleOf(err).status }

// A gone is the ErrGone of a session that has no tombstone, or that this request itself has ended.
type gone string

func (g gone) Error() string { return string(g) }

// Is makes errors.Is find store.ErrGone.
func (g gone) Is(target error) bool { return target == store.ErrGone }

// respondError logs err and makes it the response. It must not be called after part of a response was sent.
func (s *Sessions) respondError(w http.ResponseWriter, rq *request, err error) {
	status := Status(err)
	if !errors.Is(err, session.ErrClosed) { // which ChangedLate has logged
		rq.logFailure(err)
	}
	forbidCaching(w.Header())
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1") // seconds
	}
	if status == http.StatusUnauthorized {
		challenge := "Bearer" // RFC 6750: only a request with a token is told what is wrong
		if s.cookies.token(rq.base) != "" {
			challenge = `Bearer error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
	}
	if s.options.OnError != nil {
		s.options.OnError(w, rq.base, err)
		return
	}
	http.Error(w, rq.sentence(status, err), status)
}

// sentence returns all that the client learns of an error.
func (rq *request) sentence(status int, err error) string {
	rq.mu.Lock()
	saved := rq.saved // by a commit before the one that has failed
	rq.mu.Unlock()
	switch {
	case errors.Is(err, store.ErrUnavailable): // the session may have been saved
		return "The session is not available just now. Please try again."
	case saved, errors.Is(err, session.ErrClosed):
		return "Not all of this was saved. Please check before you try again."
	case status == http.StatusBadRequest:
		return "The request did not arrive whole. Nothing was saved. Please try again."
	case status == http.StatusServiceUnavailable:
		return "The session is not available just now. Nothing was saved. Please try again."
	case status == http.StatusUnauthorized:
		return "There is no session, or it has ended. Nothing was saved. Please log in."
	case status == http.StatusForbidden:
		return "You are logged in on too many devices. Please log out on one of them first."
	case errors.Is(err, store.ErrMoved):
		return "The session was renewed by another request. Nothing was saved. Please try again."
	case status == http.StatusConflict:
		return "The session has ended. Nothing was saved. Please try again."
	default:
		return "The session could not be used. Nothing was saved."
	}
}
