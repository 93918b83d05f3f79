package middleware

import (
	"io"
	"math"
	"net/http"
)

// A tail holds back the last byte of a response whose length was declared, until the handler has returned.
// Without that byte the client knows that the response is cut off. A client that has all bytes takes the response
// for complete, even if the handler then makes a late change.
//
// Responses of unknown length need no tail, since net/http marks their end when the handler returns.
type tail struct {
	declared int64 // the Content-Length; -1: unknown
	sent     int64
	last     byte
	held     bool // last is held back
	overrun  bool // a Write was refused for being too long, and later Writes are refused, too
}

// overruns reports whether written is more than the declared length, now or in an earlier Write that was
// refused. net/http also counts refused bytes, so that a shorter Write does not take the place of a longer
// Write.
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

// readFrom copies from src to w, and holds back the last byte of a declared length. w itself copies all bytes
// before, so that it can take a shortcut: a file goes from disk to the network without passing through this
// process. For the shortcut w looks for a file, or a LimitedReader directly around a file.
func (t *tail) readFrom(w http.ResponseWriter, src io.Reader) (int64, error) {
	byWrite := writerFunc(func(p []byte) (int, error) { return t.write(w, p) })
	switch {
	case t.overrun:
		return io.Copy(byWrite, src)
	case t.declared <= 0:
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
	m, err := io.Copy(byWrite, limited)
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
