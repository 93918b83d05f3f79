package middleware

import (
	"io"
	"maps"
	"net/http"
)

// A response holds an answer back until the session is committed.
//
// The order is always: commit, then header (with the cookie), then body. Until
// the commit the answer can be replaced by an error; from then on everything goes
// straight through. Like any ResponseWriter it is used by one goroutine at a
// time.
type response struct {
	inner   http.ResponseWriter
	request request
	before  http.Header // what others had set before the handler ran

	status   int         // 0 until the handler has chosen
	header   http.Header // as it was at that moment: later changes do not count
	length   int64       // the Content-Length that was declared, or -1
	buffered []byte
	begun    bool        // the header has left our hands
	tail     tail        // the end of an answer that has begun
	failed   error       // the answer was replaced by this error
	ignored  http.Header // the one that the handler gets then
}

// Unwrap gives http.ResponseController the methods that have nothing to do with
// the session, such as deadlines.
func (rw *response) Unwrap() http.ResponseWriter { return rw.inner }

func (rw *response) Header() http.Header {
	if rw.failed != nil {
		return rw.ignored
	}
	return rw.inner.Header()
}

// WriteHeader notes the status. An informational one goes out at once, without a
// commit: it is no answer yet.
func (rw *response) WriteHeader(status int) {
	informational := status >= 100 && status <= 199 && status != http.StatusSwitchingProtocols
	switch {
	case rw.failed != nil:
	case rw.begun, informational, status < 100, status > 999:
		rw.inner.WriteHeader(status) // which also complains about mistakes
	case rw.status == 0:
		rw.status = status
		rw.header = snapshot(rw.Header())
		rw.length = contentLength(rw.header)
	}
}

func (rw *response) Write(p []byte) (int, error) {
	if err := rw.refuses(); err != nil {
		return 0, err
	}
	if rw.begun {
		return rw.tail.write(rw.inner, p)
	}
	rw.chooseStatus()
	written := int64(len(rw.buffered) + len(p))
	switch {
	case len(p) == 0:
		return 0, nil
	case !bodyAllowed(rw.status):
		return 0, http.ErrBodyNotAllowed
	case rw.length >= 0 && written > rw.length:
		return 0, http.ErrContentLength
	case written <= int64(rw.request.sessions.options.Buffer):
		rw.buffered = append(rw.buffered, p...)
		return len(p), nil
	}
	if err := rw.begin("an answer larger than Options.Buffer"); err != nil {
		return 0, err
	}
	return rw.tail.write(rw.inner, p)
}

// ReadFrom lets a large file go from disk to the network without passing through
// our memory, once the buffer is full.
func (rw *response) ReadFrom(src io.Reader) (n int64, err error) {
	if err := rw.refuses(); err != nil {
		return 0, err
	}
	if !rw.begun {
		rw.chooseStatus()
		if rw.length > int64(rw.request.sessions.options.Buffer) {
			if err := rw.begin("an answer larger than Options.Buffer"); err != nil {
				return 0, err
			}
		}
	}
	var chunk []byte
	for !rw.begun {
		if chunk == nil {
			chunk = make([]byte, 16<<10)
		}
		read, readErr := src.Read(chunk)
		wrote, err := rw.Write(chunk[:read])
		n += int64(wrote)
		if err != nil {
			return n, err
		}
		if readErr == io.EOF {
			return n, nil
		}
		if readErr != nil {
			return n, readErr
		}
	}
	m, err := rw.tail.readFrom(rw.inner, src)
	return n + m, err
}

// chooseStatus chooses the status 200 where the handler has chosen none.
func (rw *response) chooseStatus() {
	if rw.status == 0 {
		rw.WriteHeader(http.StatusOK)
	}
}

// refuses returns why the handler may not write any more.
func (rw *response) refuses() error {
	if rw.failed != nil {
		return rw.failed
	}
	if rw.request.late.Load() {
		return http.ErrAbortHandler
	}
	return nil
}

// begin commits and, if that succeeds, sends what was held back.
func (rw *response) begin(by string) error {
	if err := rw.request.commit(by); err != nil {
		rw.fail(err)
		return err
	}
	if rw.request.late.Load() { // by another goroutine of the handler
		return http.ErrAbortHandler
	}
	rw.begun = true
	rw.tail.declared = rw.length
	if rw.status == 0 {
		rw.decorate(rw.Header())
		return nil
	}
	rw.sendHeader()
	if len(rw.buffered) == 0 {
		return nil
	}
	_, err := rw.tail.write(rw.inner, rw.buffered)
	rw.buffered = nil
	return err
}

// fail replaces the answer by an error.
func (rw *response) fail(err error) {
	rw.abandon()
	rw.failed, rw.ignored = err, make(http.Header)
	rw.request.sessions.answer(rw.inner, rw.request.base, rw.request.knownID(), err)
}

// abandon removes what the handler has put into the header.
func (rw *response) abandon() {
	if rw.begun {
		return
	}
	rw.buffered = nil
	h := rw.Header()
	clear(h)
	maps.Copy(h, rw.before)
}

// finish sends the rest of the answer, after the handler has returned.
func (rw *response) finish() {
	if !rw.begun && rw.failed == nil {
		_ = rw.begin("the end of the handler") // answered, if it failed
	}
	if rw.failed != nil {
		return
	}
	if rw.request.late.Load() {
		panic(http.ErrAbortHandler) // net/http's way to cut an answer off
	}
	_ = rw.tail.release(rw.inner) // the client may be gone
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
