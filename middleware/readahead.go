package middleware

import (
	"io"
	"net/http"
	"sync"
)

// readAhead reads a small body before the session is locked and returns one with
// the same content, for two reasons: a client that sends its body slowly must not
// hold its session meanwhile, and net/http notices that a client has gone away only
// once the body is read, so its place among the waiting requests would stay taken.
//
// A body of unknown length or longer than limit is left alone, since it may be a stream. So is a body
// whose client waits for permission to send it, unless it comes over HTTP/2, where net/http does not
// tell that.
//
// Memory is allocated as bytes arrive: never more than twice what is there and a little, and in the end
// just as much as there is.
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

// A bodyAhead is a body whose first part was read already.
type bodyAhead struct {
	io.ReadCloser // the body, which has the rest

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

// Close drops what was read ahead: from then on Read says what a closed body says.
func (b *bodyAhead) Close() error {
	b.mu.Lock()
	b.chunks, b.err = nil, nil
	b.mu.Unlock()
	return b.ReadCloser.Close()
}
