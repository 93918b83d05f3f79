package differential

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing/iotest"
	"time"
)

func flushCases() []testCase {
	events := []handler{set("Content-Type: text/event-stream")}
	for i := range 3 {
		event := fmt.Sprintf("data: %d\n\n", i)
		events = append(events, text(event), flush, await(event))
	}
	return []testCase{
		{name: "flush: alone", session: early, handler: flush},
		{name: "flush: after the body", session: early, handler: steps(text("<h1>body</h1>"), flush)},
		{name: "flush: after a status", session: early, handler: steps(status(404), flush, text("body"))},
		{name: "flush: in a declared length", session: early,
			handler: steps(set("Content-Length: 10"), text("12345"), flush, await("12345"), text("67890"))},
		{name: "flush: short of the declared length", session: early, handler: steps(set("Content-Length: 10"), text("12345"), flush)},
		{name: "flush: by the controller", session: early, handler: steps(text("body"), tryFlush, await("body"))},
		{name: "flush: before a copy", session: early, handler: steps(flush, copied(strings.Repeat("x", 200_000)))},
		{name: "flush: events", session: early, handler: steps(events...)},
	}
}

var errSource = errors.New("the source failed")

// source hides all methods but Read.
func source(s string) io.Reader { return struct{ io.Reader }{strings.NewReader(s)} }

// failing returns a source that fails after s.
func failing(s string) io.Reader { return io.MultiReader(source(s), iotest.ErrReader(errSource)) }

func readFromCases() []testCase {
	copying := func(src func() io.Reader) handler {
		return func(x *exchange, w http.ResponseWriter, _ *http.Request) { x.wrote(io.Copy(w, src())) }
	}
	long := strings.Repeat("0123456789", 10_000)
	return []testCase{
		{name: "copy: from a string", handler: copying(func() io.Reader { return strings.NewReader("body") })},
		{name: "copy: from a reader", handler: copied("body")},
		{name: "copy: 1000 bytes", handler: copied(long[:1000])},
		{name: "copy: 100 KB", session: early, handler: copied(long)},
		{name: "copy: 1000 bytes, then an error", handler: copying(func() io.Reader { return failing(long[:1000]) })},
		{name: "copy: 100 KB, then an error", session: early, handler: copying(func() io.Reader { return failing(long) })},
		{name: "copy: an error at once, then 502", handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			n, err := io.Copy(w, failing(""))
			x.wrote(n, err)
			w.Header().Set("X-Why", err.Error())
			http.Error(w, "upstream failed", http.StatusBadGateway)
		}},
		{name: "copy: nothing, then 404", handler: steps(copied(""), set("X-Why: empty"), status(404), text("nothing there"))},
		{name: "copy: nothing of a long declared length, then 404", handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			x.wrote(io.Copy(w, failing("")))
			w.Header().Del("Content-Length")
			w.WriteHeader(404)
		}},
		{name: "copy: between writes", session: early, handler: steps(text("before,"), copied(long), text(",after"))},
		{name: "copy: exactly the declared length", handler: steps(set("Content-Length: 1000"), copied(long[:1000]))},
		{name: "copy: more than the declared length", handler: steps(set("Content-Length: 1000"), copied(long[:1500]))},
		{name: "copy: less than the declared length", handler: steps(set("Content-Length: 1000"), copied(long[:500]))},
		{name: "copy: long, exactly the declared length", session: early, handler: steps(set("Content-Length: 100000"), copied(long))},
		{name: "copy: long, less than the declared length", session: early, handler: steps(set("Content-Length: 100000"), copied(long[:90_000]))},
		{name: "copy: a file", session: early, handler: fromFile(0, 0)},
		{name: "copy: a file of declared length", session: early, handler: fromFile(300_000, 0)},
		{name: "copy: a range of a file", request: request{header: []string{"Range: bytes=5-14"}}, handler: plain(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader(long))
		})},
		{name: "copy: a part of a file", session: early, handler: fromFile(200_000, 200_000)},
	}
}

// fromFile copies a file of 300,000 bytes, or its first limit bytes, to an answer of declared length.
func fromFile(declared, limit int64) handler {
	return func(x *exchange, w http.ResponseWriter, _ *http.Request) {
		f, err := os.CreateTemp("", "latchkey")
		if err != nil {
			x.note("%v", err)
			return
		}
		defer os.Remove(f.Name())
		defer f.Close()
		if _, err := f.Write([]byte(strings.Repeat("0123456789", 30_000))); err != nil {
			x.note("%v", err)
		}
		_, _ = f.Seek(0, io.SeekStart)
		if declared > 0 {
			w.Header().Set("Content-Length", strconv.FormatInt(declared, 10))
		}
		if limit > 0 {
			x.wrote(io.CopyN(w, f, limit))
		} else {
			x.wrote(io.Copy(w, f))
		}
		at, _ := f.Seek(0, io.SeekCurrent)
		x.note("the file is at %d", at)
	}
}

const ownAnswer = "HTTP/1.1 299 Own\r\nContent-Length: 3\r\nX-Own: 1\r\n\r\nown"

func hijackCases() []testCase {
	// taking runs the handlers in before, then takes the connection over and answers on it.
	taking := func(before ...handler) handler {
		return steps(append(before, func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			answerOn(x, w, func(conn net.Conn, _ *bufio.ReadWriter) { x.write(conn, ownAnswer) })
		})...)
	}
	return []testCase{
		{name: "hijack: an own answer", on: http1, session: never, handler: taking()},
		{name: "hijack: is refused", on: http2, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			_, _, err := http.NewResponseController(w).Hijack()
			x.note("hijacked, %v", err)
			http.Error(w, "not here", http.StatusNotImplemented)
		}},
		{name: "hijack: writes afterwards", on: http1, session: never, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			answerOn(x, w, func(conn net.Conn, _ *bufio.ReadWriter) {
				x.write(w, "lost")
				x.write(w, "")
				w.WriteHeader(404)
				x.wrote(io.Copy(w, source("lost, too")))
				x.note("flushed, %v", http.NewResponseController(w).Flush())
				x.write(conn, ownAnswer)
			})
		}},
		{name: "hijack: after a status", on: http1, session: early, handler: taking(status(201))},
		{name: "hijack: after a flush", on: http1, session: early, handler: taking(text("flushed"), flush)},
		{name: "hijack: after a part of the body", on: http1, session: early, handler: taking(text("a part"))},
		{name: "hijack: after a long body of declared length", on: http1, session: early,
			handler: taking(set("Content-Length: 100000"), text(strings.Repeat("x", 100_000)))},
		{name: "hijack: what the client has sent already", on: http1, session: never, request: request{after: "ping\n"},
			handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
				answerOn(x, w, func(conn net.Conn, stream *bufio.ReadWriter) {
					line, err := stream.ReadString('\n')
					x.note("read %q, %v", line, err)
					stream.WriteString(ownAnswer)
					stream.Flush()
				})
			}},
		{name: "hijack: an upgrade", on: http1, session: early, request: upgrade,
			handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "Upgrade")
				w.Header().Set("Upgrade", "echo")
				w.WriteHeader(http.StatusSwitchingProtocols)
				answerOn(x, w, func(conn net.Conn, stream *bufio.ReadWriter) {
					line, err := stream.ReadString('\n')
					x.note("read %q, %v", line, err)
					x.write(conn, "pong\n")
				})
			}},
		{name: "hijack: and a panic", on: http1, session: never, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			answerOn(x, w, func(conn net.Conn, _ *bufio.ReadWriter) {
				x.write(conn, ownAnswer)
				panic("boom")
			})
		}},
	}
}

// upgrade asks for another protocol, and speaks it at once.
var upgrade = request{header: []string{"Connection: Upgrade", "Upgrade: echo"}, after: "ping\n"}

// answerOn takes the connection over, and closes it in the end.
func answerOn(x *exchange, w http.ResponseWriter, answer func(net.Conn, *bufio.ReadWriter)) {
	conn, stream, err := http.NewResponseController(w).Hijack()
	if err != nil {
		x.note("hijacked, %v", err)
		return
	}
	defer conn.Close()
	answer(conn, stream)
}

// The writers in these cases do what well-known compressors do, which differ in where they
// change the header.
func compressCases() (cases []testCase) {
	const page = "<!doctype html><p>some text, some text, some text, some text</p>"
	for _, kind := range []struct {
		name string
		wrap func(http.Handler) http.Handler
	}{
		{"gzip in Write", compressor(inWrite)},
		{"gzip in WriteHeader", compressor(inWriteHeader)},
	} {
		for _, h := range []struct {
			name    string
			request request
			session moment
			handler handler
		}{
			{"a page", get, atEnd, answering(page)},
			{"a page of declared length", get, atEnd, answering(page, "Content-Length: 64")},
			{"a page with a type", get, atEnd, answering(page, "Content-Type: text/x-own")},
			{"404", get, atEnd, plain(http.NotFound)},
			{"a long page", get, early, answering(strings.Repeat(page, 2000))},
			{"a flush", get, early, steps(text(page), flush, text(page))},
			{"a copy", get, atEnd, copied(page)},
			{"own Vary", get, atEnd, answering(page, "Vary: Accept")},
			{"204", get, atEnd, status(204)},
		} {
			inside := h.session
			if h.name == "a long page" {
				inside = atEnd // a short one, once it is compressed
			}
			cases = append(cases,
				testCase{name: kind.name + " outside: " + h.name, request: h.request, session: h.session, handler: h.handler,
					outside: func(_ *exchange, next http.Handler) http.Handler { return kind.wrap(next) }},
				testCase{name: kind.name + " inside: " + h.name, request: h.request, session: inside,
					handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
						kind.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.handler(x, w, r) })).ServeHTTP(w, r)
					}},
			)
		}
	}
	return cases
}

// A place is where a compressor changes the header.
type place int

const (
	inWrite       place = iota // as in many blogs: if no status was written, and the type is sniffed
	inWriteHeader              // there alone, which Write calls by itself
)

func compressor(at place) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			z := &compressing{ResponseWriter: w, at: at}
			defer z.close()
			next.ServeHTTP(z, r)
		})
	}
}

type compressing struct {
	http.ResponseWriter
	at      place
	status  int
	encoder *gzip.Writer
}

func (z *compressing) WriteHeader(status int) {
	z.status = status
	if h := z.Header(); z.at == inWriteHeader {
		h.Del("Content-Length")
		if status != http.StatusNoContent {
			h.Set("Content-Encoding", "gzip")
			h.Add("Vary", "Accept-Encoding")
		}
	}
	z.ResponseWriter.WriteHeader(status)
}

func (z *compressing) Write(p []byte) (int, error) {
	h := z.Header()
	if z.encoder == nil {
		if z.at != inWriteHeader || z.status == 0 {
			if h.Get("Content-Type") == "" {
				h.Set("Content-Type", http.DetectContentType(p))
			}
		}
		h.Del("Content-Length")
		switch {
		case z.at == inWrite:
			h.Set("Content-Encoding", "gzip")
			h.Add("Vary", "Accept-Encoding")
		case z.at == inWriteHeader && z.status == 0:
			z.WriteHeader(http.StatusOK)
		}
		z.encoder = gzip.NewWriter(z.ResponseWriter)
	}
	return z.encoder.Write(p)
}

func (z *compressing) Flush() {
	if z.encoder != nil {
		_ = z.encoder.Flush()
	}
	_ = http.NewResponseController(z.ResponseWriter).Flush()
}

func (z *compressing) close() {
	if z.encoder != nil {
		_ = z.encoder.Close()
	}
}
