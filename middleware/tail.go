package middleware

import (
	"io"
	"math"
	"net/http"
)

// A tail holds back the last byte of a response whose length was declared, until
// the handler has returned. Without that byte a client knows that the response
// is cut off. Once it has all of them, nothing can take back what it believes, even
// if the handler goes on to change a session that was saved before.
//
// Responses of unknown length need no tail: they end when net/http says so.
type tail struct {
	declared int64 // the Content-Length; -1: unknown
	sent     int64
	last     byte
	held     bool // the last byte is there
	overrun  bool // a Write was refused for being too long: so are all that follow
}

// overruns reports whether written bytes are more than was declared, now or in an earlier Write
// that was refused. net/http counts what it refuses, so that a shorter Write does not get into the
// place of a longer one.
func (t *tail) overruns(written int64) bool {
	t.overrun = t.overrun || t.declared >= 0 && written > t.declared
	return t.overrun
}

func (t *tail) write(w http.ResponseWriter, p []byte) (int, error) {
	if len(p) > 0 && (t.held || t.overrun) {
		return 0, http.ErrContentLength
	}
	if t.declared <= 0 || t.sent+int64(len(p)) != t.declared || len(p) == 0 {
		n, err := w.Write(p)
		t.sent += int64(n)
		return n, err
	}
	last := len(p) - 1
	n, err := w.Write(p[:last])
	t.sent += int64(n)
	if err != nil {
		return n, err
	}
	t.last, t.held = p[last], true
	return len(p), nil
}

// readFrom copies all but what may be the last byte so that w can take a shortcut:
// a file goes from disk to the network without passing through here. w looks for a
// file, or a LimitedReader right above one.
func (t *tail) readFrom(w http.ResponseWriter, src io.Reader) (int64, error) {
	if t.declared <= 0 {
		return io.Copy(w, src)
	}
	limited, ok := src.(*io.LimitedReader)
	if !ok {
		limited = &io.LimitedReader{R: src, N: math.MaxInt64}
	}
	most := &io.LimitedReader{R: limited.R, N: min(limited.N, t.declared-t.sent-1)}
	allowed := most.N
	n, err := io.Copy(w, most)
	limited.N -= allowed - most.N
	t.sent += n
	if err != nil {
		return n, err
	}
	m, err := io.Copy(writerFunc(func(p []byte) (int, error) { return t.write(w, p) }), limited)
	return n + m, err
}

// releaseLast sends the byte that was held back.
func (t *tail) releaseLast(w http.ResponseWriter) error {
	if !t.held {
		return nil
	}
	n, err := w.Write([]byte{t.last})
	t.sent += int64(n)
	t.held = false
	return err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
