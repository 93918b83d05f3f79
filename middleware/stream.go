package middleware

import (
	"bufio"
	"context"
	"net"
	"net/http"
)

// Flush, for streams, and Hijack, for websockets, begin a response before the handler has returned. Both
// commit first, which also releases the lock: however long streams and websockets last, they hold no
// session.

// Flush implements http.Flusher.
func (rw *response) Flush() { _ = rw.FlushError() } // a Flusher returns no error

// FlushError commits the session and sends all that was written. http.ResponseController calls it.
func (rw *response) FlushError() error {
	if err := rw.refusal(); err != nil {
		return err
	}
	if !offers[http.Flusher](rw.around) && !offers[interface{ FlushError() error }](rw.around) {
		return http.ErrNotSupported
	}
	if !rw.begun {
		if err := rw.beginResponse("Flush"); err != nil {
			return err
		}
	}
	if err := rw.tail.releaseLast(rw.around); err != nil { // a Flush sends everything
		return err
	}
	return http.NewResponseController(rw.around).Flush()
}

// Hijack commits the session and gives the connection to the handler.
func (rw hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := rw.refusal(); err != nil {
		return nil, nil, err
	}
	if !rw.begun {
		// Without a status the handler itself writes the header to the connection. beginResponse has put the
		// cookie into that header.
		if err := rw.beginResponse("Hijack"); err != nil {
			return nil, nil, err
		}
	}
	around := http.NewResponseController(rw.around)
	if rw.tail.held { // the response was complete; after a Hijack net/http sends nothing, not even its own buffer
		if err := rw.tail.releaseLast(rw.around); err != nil {
			return nil, nil, err
		}
		if err := around.Flush(); err != nil {
			return nil, nil, err
		}
	}
	conn, stream, err := around.Hijack()
	if err != nil {
		return conn, stream, err
	}
	rw.request.hijacked.Store(&conn)
	if late := rw.request.late.Load(); late != nil { // the change may have come before conn was stored
		_ = conn.Close()
		return nil, nil, *late
	}
	return conn, stream, nil
}

// CloseNotify returns a channel that gets a value when the client has gone away or the request has ended.
// CloseNotify is deprecated in net/http, but frameworks that offer streams still assert it.
func (rw *response) CloseNotify() <-chan bool { return closeNotify(rw.request.base.Context()) }

func closeNotify(ctx context.Context) <-chan bool {
	gone := make(chan bool, 1) // so that the send never blocks
	context.AfterFunc(ctx, func() { gone <- true })
	return gone
}
