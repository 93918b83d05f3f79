package middleware

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"

	"github.com/a2139e8d/latchkey/internal/excerpt"
)

// Recoverer answers a panic of next with status 500, and logs the panic and its stack with slog.Default. Put it
// around the sessions, so that the panic passes through them, and nothing of the request is saved:
//
//	http.ListenAndServe(":8080", middleware.Recoverer(sessions.Handler(router)))
//
// The recoverer of a framework is inside the sessions. It hides the panic from them, and what the handler has
// set is saved: leave it out. If the response has begun before the panic, Recoverer cuts the connection off, so that
// no client takes half of a response for the whole. A panic with http.ErrAbortHandler, which asks for that, is
// not logged.
func Recoverer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &begins{ResponseWriter: w, ctx: r.Context()}
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if cause != http.ErrAbortHandler { // a convention of net/http: this very value
				slog.ErrorContext(r.Context(), "panic", "error", cause, "method", excerpt.Of(r.Method), "route", patternOf(r), "stack", string(debug.Stack()))
			}
			if seen.begun || cause == http.ErrAbortHandler {
				panic(http.ErrAbortHandler)
			}
			h := w.Header() // of the handler, if no session has reset it; http.Error does not touch these
			h.Del("Content-Encoding")
			h.Del("Etag")
			h.Del("Last-Modified")
			h.Del("Expires")
			forbidCaching(h)
			http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		}()
		if offers[http.Hijacker](w) {
			next.ServeHTTP(hijackableBegins{seen}, r)
		} else {
			next.ServeHTTP(seen, r)
		}
	})
}

// A begins knows whether the response has begun.
type begins struct {
	http.ResponseWriter
	ctx   context.Context // of the request
	begun bool
}

func (b *begins) WriteHeader(status int) {
	b.ResponseWriter.WriteHeader(status)                                                    // it panics if there is no such status, and the response has not begun
	b.begun = b.begun || status >= http.StatusOK || status == http.StatusSwitchingProtocols // others inform
}

func (b *begins) Write(p []byte) (int, error) {
	b.begun = true
	return b.ResponseWriter.Write(p)
}

// ReadFrom lets files go from disk to the network without passing through our memory.
func (b *begins) ReadFrom(src io.Reader) (int64, error) {
	b.begun = true
	return io.Copy(b.ResponseWriter, src)
}

func (b *begins) Flush() { _ = b.FlushError() } // http.Flusher has no error

// FlushError is for http.ResponseController.
func (b *begins) FlushError() error {
	before := b.begun
	b.begun = true
	err := http.NewResponseController(b.ResponseWriter).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		b.begun = before
	}
	return err
}

// CloseNotify is for frameworks, see response.CloseNotify.
func (b *begins) CloseNotify() <-chan bool { return closeNotify(b.ctx) }

// Unwrap is for http.ResponseController.
func (b *begins) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// A hijackableBegins is for connections that can be hijacked, see hijackable.
type hijackableBegins struct{ *begins }

func (b hijackableBegins) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, stream, err := http.NewResponseController(b.ResponseWriter).Hijack()
	b.begun = b.begun || err == nil
	return conn, stream, err
}
