package middleware

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/a2139e8d/latchkey/session"
)

// A late change comes after the session's commit. It cannot be saved any more, and it must not be lost in
// silence: a client must not take the response for a success. Before the response has begun, the client gets
// an error. Only a response that has begun is cut off, since browsers repeat a request, even a POST, whose
// connection ends before the first byte.

// ChangedLate implements keep.Keeper.
func (rq *request) ChangedLate(method, key, sealed string) {
	if rq.commitFailed.Load() {
		return // nothing was saved, which is logged, and its error is the response
	}
	err := fmt.Errorf("middleware: %s after %s: %w", method, sealed, session.ErrClosed)
	rq.late.CompareAndSwap(nil, &err)
	if conn := rq.hijacked.Load(); conn != nil {
		_ = (*conn).Close() // the only way to cut this response off
	}
	rq.seen.failed(err)
	rq.log(slog.LevelError, "late", "session changed after it was saved; the change is lost",
		slog.String("call", method), keyAttr(key), slog.String("saved_by", sealed),
		slog.String("rule", "a session is saved before the first byte of the response: change it before "+sealed))
}

// cutOff ends a response that has begun so that no client takes it for complete. It first sends what the
// handler has written, since a client that has the header does not repeat its request.
func (rw *response) cutOff() {
	if conn := rw.request.hijacked.Load(); conn != nil {
		_ = (*conn).Close()
	} else {
		_ = http.NewResponseController(rw.around).Flush() // if this fails, there is no other way to send it
	}
	panic(http.ErrAbortHandler) // net/http's way
}
