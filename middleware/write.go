package middleware

import (
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strconv"
	"strings"
)

// overflow is why a response larger than Options.Buffer begins.
const overflow = "a response larger than Options.Buffer"

// Header implements http.ResponseWriter.
func (rw *response) Header() http.Header {
	switch {
	case rw.failed != nil:
		return rw.ignored
	case rw.draft != nil && !rw.begun:
		return rw.draft.header
	}
	return rw.around.Header()
}

// WriteHeader notes the status. As in net/http, the first status counts, and later ones are ignored, even if they
// are invalid or informational.
func (rw *response) WriteHeader(status int) {
	switch {
	case rw.failed != nil:
	case rw.begun:
		rw.around.WriteHeader(status) // reports the mistake
	case rw.status != 0:
		rw.reportSuperfluous(status)
	case rw.informational(status), status < 100, status > 999:
		if rw.draft != nil {
			rw.showHeader()
			rw.draft.shown = rw.draft.header.Clone()
		}
		rw.around.WriteHeader(status) // sends it without a commit, since it is no final response; or panics
	default:
		rw.explicit = true
		rw.setStatus(status)
	}
}

func (rw *response) informational(status int) bool {
	if status == http.StatusSwitchingProtocols {
		return rw.request.base.ProtoMajor > 1 // in HTTP/2 a 101 has no meaning, and a response follows
	}
	return status >= 100 && status <= 199
}

func (rw *response) Write(p []byte) (int, error) {
	if err := rw.refusal(); err != nil {
		return 0, err
	}
	if rw.begun {
		return rw.tail.write(rw.around, p)
	}
	if rw.status == 0 {
		rw.setStatus(http.StatusOK)
	}
	written := int64(len(rw.buffered) + len(p))
	switch {
	case len(p) == 0:
		return 0, nil
	case rw.status < 200, rw.status == http.StatusNoContent, rw.status == http.StatusNotModified:
		return 0, http.ErrBodyNotAllowed
	case rw.tail.declared >= 0 && rw.tail.overruns(written):
		return 0, http.ErrContentLength
	case written <= int64(rw.request.sessions.options.Buffer):
		rw.buffered = append(rw.buffered, p...)
		return len(p), nil
	}
	if err := rw.beginResponse(overflow); err != nil {
		return 0, err
	}
	return rw.tail.write(rw.around, p)
}

// ReadFrom lets a large file go from disk to the network without passing through our memory, once the buffer is
// full. The response does not begin before src has given its first byte: a handler whose source fails at once can
// still respond with an error.
func (rw *response) ReadFrom(src io.Reader) (n int64, err error) {
	if err := rw.refusal(); err != nil {
		return 0, err
	}
	if !rw.begun {
		n, err = rw.readUntilBegun(src)
		if err != nil || !rw.begun {
			return n, err
		}
	}
	m, err := rw.tail.readFrom(rw.around, src)
	return n + m, err
}

// readUntilBegun copies from src until the response has begun or src has ended.
func (rw *response) readUntilBegun(src io.Reader) (n int64, err error) {
	const first = 512 // bytes: net/http also reads so many before it sends a header
	chunk := make([]byte, 16<<10)
	n, err = io.CopyBuffer(writerFunc(rw.Write), io.LimitReader(src, first), chunk)
	if err != nil || n < first || rw.begun {
		return n, err
	}
	buffer := int64(rw.request.sessions.options.Buffer)
	if rw.tail.declared > buffer { // the body will not fit into the buffer
		return n, rw.beginResponse(overflow)
	}
	room := buffer - int64(len(rw.buffered))       // the first byte beyond begins the response
	most := io.LimitReader(src, max(room, room+1)) // the sum may overflow
	m, err := io.CopyBuffer(writerFunc(rw.Write), most, chunk)
	return n + m, err
}

// refusal returns why the handler may not write any more. If there was a late change and the response has not
// begun, the error replaces the response.
func (rw *response) refusal() error {
	if rw.failed != nil {
		return rw.failed
	}
	late := rw.request.late.Load()
	switch {
	case late == nil, rw.abandoned:
		return nil
	case rw.begun:
		return *late
	default:
		return rw.beginResponse("a change that came late") // fails
	}
}

// setStatus sets the status and, with it, the header.
func (rw *response) setStatus(status int) {
	rw.status = status
	if h := rw.Header(); len(h) > 0 {
		rw.header = h.Clone()
	}
	rw.tail.declared = contentLength(rw.header)
}

// reportSuperfluous logs, once in a response, that WriteHeader was called although the status was chosen already.
// net/http reports the same mistake, but it does not see the call while the response waits for its commit.
func (rw *response) reportSuperfluous(status int) {
	if rw.warned {
		return
	}
	rw.warned = true
	rw.request.log(slog.LevelWarn, "superfluous", "superfluous WriteHeader, which is ignored",
		slog.Int("status", rw.status), slog.Int("ignored", status), slog.String("caller", handlerCaller()))
}

// handlerCaller returns the handler's function that has called WriteHeader, directly or through net/http, and its
// line.
func handlerCaller() string {
	pc := make([]uintptr, 16)
	frames := runtime.CallersFrames(pc[:runtime.Callers(4, pc)]) // above WriteHeader
	for {
		frame, more := frames.Next()
		if !more || !strings.HasPrefix(frame.Function, "net/http.") {
			return frame.Function + ":" + strconv.Itoa(frame.Line)
		}
	}
}
