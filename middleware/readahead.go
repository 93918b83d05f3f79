package middleware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// readAhead reads a small body before the session is locked, and returns a body with the same content. There are
// two reasons. A client that sends its body slowly must not hold its session meanwhile. And net/http notices that
// a client has gone away only after the body is read, so its request would keep its place in the queue.
//
// A body of unknown length, or longer than limit, is left alone, since it may be a stream. So is a body
// whose client waits for permission to send it; over HTTP/2 net/http does not show whether the client waits.
//
// Memory is allocated as bytes arrive: never more than twice what has arrived and a little, and in the end
// exactly the size of the body.
func readAhead(r *http.Request, limit int) io.ReadCloser {
	if r.Body == nil || r.ContentLength <= 0 || r.ContentLength > int64(limit) || r.Header.Get("Expect") != "" {
		return r.Body
	}
	const first = 4 << 10
	b := &bodyAhead{ReadCloser: r.Body}
	for left := r.ContentLength; left > 0 && b.err == nil; {
		chunk := make([]byte, min(left, max(r.ContentLength-left, first)))
		n, err := readFull(b.ReadCloser, chunk)
		b.chunks = append(b.chunks, chunk[:n])
		b.err = err // io.EOF, too: after a Flush net/http would call the body closed
		left -= int64(n)
	}
	return b
}

// errBody: the body is cut off, so net/http takes the client for gone away, and has ended the request's context. But the
// client may have closed its half of the connection alone, or be slower than http.Server.ReadTimeout: then it reads the
// response.
var errBody = errors.New("middleware: the request's body did not arrive whole")

// whyCanceled returns err, or, if that is a canceled context and the body did not arrive whole, errBody.
func whyCanceled(err error, body io.ReadCloser) error {
	b, ahead := body.(*bodyAhead)
	if !ahead || !errors.Is(err, context.Canceled) || b.err == nil || b.err == io.EOF {
		return err
	}
	return fmt.Errorf("%w: %w (%w)", errBody, b.err, err)
}

// A bodyAhead is a body whose first part was read already.
type bodyAhead struct {
	io.ReadCloser // the rest of the body

	mu     sync.Mutex // guards the rest: an http.Transport closes a body while it reads from it
	chunks [][]byte
	err    error // of reading: the handler gets it after the chunks
}

// readFull is io.ReadFull, but returns the reader's own error.
func readFull(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = r.Read(p[n:])
		n += m
	}
	return n, err
}

func (b *bodyAhead) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	for len(b.chunks) > 0 && n < len(p) {
		m := copy(p[n:], b.chunks[0])
		n += m
		if b.chunks[0] = b.chunks[0][m:]; len(b.chunks[0]) == 0 {
			b.chunks[0] = nil
			b.chunks = b.chunks[1:]
		}
	}
	err = b.err
	done := len(b.chunks) == 0
	b.mu.Unlock()
	if n > 0 || !done {
		return n, nil
	}
	if err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// Close drops what was read ahead: from then on Read acts as on any closed body.
func (b *bodyAhead) Close() error {
	b.mu.Lock()
	b.chunks, b.err = nil, nil
	b.mu.Unlock()
	return b.ReadCloser.Close()
}
