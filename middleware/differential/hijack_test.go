package differential

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
)

const ownAnswer = "HTTP/1.1 299 Own\r\nContent-Length: 3\r\nX-Own: 1\r\n\r\nown"

func hijackCases() []testCase {
	// taking takes the connection over after what before does, and answers on it.
	taking := func(before func(x *exchange, w http.ResponseWriter)) handler {
		return func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			before(x, w)
			answerOn(x, w, func(conn net.Conn, _ *bufio.ReadWriter) { x.write(conn, ownAnswer) })
		}
	}
	nothing := func(*exchange, http.ResponseWriter) {}
	return []testCase{
		{name: "hijack: an own answer", on: http1, session: never, handler: taking(nothing)},
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
		{name: "hijack: after a status", on: http1, session: early, handler: taking(func(_ *exchange, w http.ResponseWriter) { w.WriteHeader(201) })},
		{name: "hijack: after a flush", on: http1, session: early, handler: taking(func(_ *exchange, w http.ResponseWriter) {
			io.WriteString(w, "flushed")
			w.(http.Flusher).Flush()
		})},
		{name: "hijack: after a part of the body", on: http1, session: early, handler: taking(func(_ *exchange, w http.ResponseWriter) {
			io.WriteString(w, "a part")
		})},
		{name: "hijack: after a long body of declared length", on: http1, session: early, handler: taking(func(_ *exchange, w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100000")
			io.WriteString(w, strings.Repeat("x", 100_000))
		})},
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
