package middleware

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
)

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
		rw.tail.declared = contentLength(rw.header)
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
	case rw.tail.overruns(written):
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
		if rw.tail.declared > int64(rw.request.sessions.options.Buffer) {
			if err := rw.begin("an answer larger than Options.Buffer"); err != nil {
				return 0, err
			}
		}
	}
	if !rw.begun { // the first byte that the buffer has no room for begins the answer
		room := int64(rw.request.sessions.options.Buffer - len(rw.buffered))
		most := io.LimitReader(src, max(room, room+1)) // the sum may overflow
		n, err = io.CopyBuffer(writerFunc(rw.Write), most, make([]byte, 16<<10))
		if err != nil || !rw.begun {
			return n, err
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
	if rw.request.late.Load() && !rw.abandoned {
		return http.ErrAbortHandler
	}
	return nil
}

// contentLength returns the Content-Length that h declares, or -1.
func contentLength(h http.Header) int64 {
	n, err := strconv.ParseInt(cmp.Or(h.Get("Content-Length"), "-1"), 10, 64)
	if err != nil {
		return -1
	}
	return max(n, -1)
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
