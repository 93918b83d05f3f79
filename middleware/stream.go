package middleware

import (
	"bufio"
	"context"
	"net"
	"net/http"
)

// Flush, for streams, and Hijack, for websockets, begin an answer before the
// handler has returned. Both commit first, which also releases the lock: however
// long they last, they hold no session.

// Flush implements http.Flusher.
func (rw *response) Flush() { _ = rw.FlushError() } // a Flusher returns no error

// FlushError commits the session and sends what there is. It is what
// http.ResponseController calls.
func (rw *response) FlushError() error {
	if err := rw.refuses(); err != nil {
		return err
	}
	if !offers[http.Flusher](rw.inner) && !offers[interface{ FlushError() error }](rw.inner) {
		return http.ErrNotSupported
	}
	if !rw.begun {
		if err := rw.begin("Flush"); err != nil {
			return err
		}
	}
	if err := rw.tail.release(rw.inner); err != nil { // a Flush sends everything
		return err
	}
	return http.NewResponseController(rw.inner).Flush()
}

// A hijackable is the response where the connection can be taken over. Elsewhere, as over HTTP/2
// and inside an http.TimeoutHandler, handlers must not see a Hijack: websocket libraries send
// their 101 as soon as they do.
type hijackable struct{ *response }

// writer returns what the handler writes to.
func (rw *response) writer() http.ResponseWriter {
	if offers[http.Hijacker](rw.inner) {
		return hijackable{rw}
	}
	return rw
}

// Hijack commits the session and hands the connection over.
func (rw hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := rw.refuses(); err != nil {
		return nil, nil, err
	}
	if !rw.begun {
		// Without a status the handler writes its own header to the
		// connection, from Header, where begin has put the cookie.
		if err := rw.begin("Hijack"); err != nil {
			return nil, nil, err
		}
	}
	if err := rw.releaseBeforeHijack(); err != nil {
		return nil, nil, err
	}
	conn, stream, err := http.NewResponseController(rw.inner).Hijack()
	if err != nil {
		return conn, stream, err
	}
	rw.request.hijacked.Store(&conn)
	if late := rw.request.late.Load(); late != nil { // it may have come before conn was there to be closed
		_ = conn.Close()
		return nil, nil, *late
	}
	return conn, stream, nil
}

// releaseBeforeHijack sends the last byte of an answer that was complete: afterwards net/http sends
// nothing any more, not even what it has in its own buffer.
func (rw *response) releaseBeforeHijack() error {
	if !rw.tail.held {
		return nil
	}
	if err := rw.tail.release(rw.inner); err != nil {
		return err
	}
	return http.NewResponseController(rw.inner).Flush()
}

// CloseNotify returns a channel that gets a value when the client is gone or the request is over.
// It is deprecated in net/http, but frameworks that offer streams still assert that it is there.
func (rw *response) CloseNotify() <-chan bool {
	gone := make(chan bool, 1) // so that nobody has to receive
	context.AfterFunc(rw.request.base.Context(), func() { gone <- true })
	return gone
}

// offers reports whether w, or a writer that it wraps, is a T.
func offers[T any](w http.ResponseWriter) bool {
	for {
		if _, ok := w.(T); ok {
			return true
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = u.Unwrap()
	}
}
