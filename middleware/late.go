package middleware

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/a2139e8d/latchkey/session"
)

// A late change is one that comes after the session's commit. It cannot be saved any more, and it
// must not be lost in silence: a client must not take the answer for a success. As long as nothing
// of the answer has left, the client gets an error. Only an answer that has begun is cut off,
// since browsers repeat a request, even a POST, whose connection ends before the first byte.

// ChangedLate implements keep.Keeper.
func (rq *request) ChangedLate(method, key, sealed string) {
	if rq.commitFailed.Load() {
		return // nothing was saved, which is logged, and the answer is that error
	}
	err := fmt.Errorf("middleware: %s after %s: %w", method, sealed, session.ErrClosed)
	rq.late.CompareAndSwap(nil, &err)
	if conn := rq.hijacked.Load(); conn != nil {
		_ = (*conn).Close() // the one way to cut this answer off
	}
	rq.log(slog.LevelError, "late", "session changed after it was saved; the change is lost",
		slog.String("call", method), keyAttr(key), slog.String("saved_by", sealed),
		slog.String("rule", "a session is saved before the first byte of the answer: change it before "+sealed))
}

// refuses returns why the handler may not write any more. Where that is a late change and nothing
// has left yet, this is also where the error takes the answer's place.
func (rw *response) refuses() error {
	if rw.failed != nil {
		return rw.failed
	}
	late := rw.request.late.Load()
	switch {
	case late == nil, rw.abandoned:
		return nil
	case rw.begun:
		return *late
	default:
		return rw.begin("a change that came late") // which fails
	}
}

// cutOff ends an answer that has begun so that no client takes it for complete. What it has
// written goes out first: a client that has the header does not send its request again.
func (rw *response) cutOff() {
	if conn := rw.request.hijacked.Load(); conn != nil {
		_ = (*conn).Close()
	} else {
		_ = http.NewResponseController(rw.inner).Flush() // where it cannot, nobody can
	}
	panic(http.ErrAbortHandler) // net/http's way
}

// committedCookies returns the cookie of the commits that have succeeded, if they have one, and
// those of other Sessions inside.
func (rq *request) committedCookies() (all []*http.Cookie) {
	rq.mu.Lock()
	if rq.cookie != nil && rq.sessions.cookies.token == nil {
		all = append(all, rq.cookie)
	}
	rq.mu.Unlock()
	for inner := rq.inner.Load(); inner != nil; inner = inner.sibling {
		all = append(all, inner.committedCookies()...)
	}
	return all
}
