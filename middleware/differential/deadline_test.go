package differential

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

func deadlineCases() []testCase {
	past := time.Now().Add(-time.Second)
	return []testCase{
		{name: "deadline: for reading, over", on: http1, request: request{method: "POST", body: "body", stalls: true}, handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.note("set, %v", http.NewResponseController(w).SetReadDeadline(past))
			_, err := io.ReadAll(r.Body)
			x.note("reading failed: %t", err != nil)
			w.Header().Set("Connection", "close")
		}},
		{name: "deadline: for reading, generous", request: post("body"), handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.note("set, %v", http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Minute)))
			b, err := io.ReadAll(r.Body)
			x.note("read %q, %v", b, err)
		}},
		{name: "deadline: for writing, over", session: never, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			x.note("set, %v", http.NewResponseController(w).SetWriteDeadline(past))
			x.write(w, "lost")
		}},
		{name: "deadline: for writing, over, and a flush", on: http1, session: never, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			x.note("set, %v", http.NewResponseController(w).SetWriteDeadline(past))
			x.write(w, "lost")
			x.note("flushed, %t", http.NewResponseController(w).Flush() != nil)
		}},
		{name: "deadline: of the server, generous", request: post("body"), handler: echo,
			server: func(s *http.Server) { s.ReadTimeout, s.WriteTimeout = time.Minute, time.Minute }},
		{name: "full duplex: is enabled", request: post("body"), handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.note("enabled, %v", http.NewResponseController(w).EnableFullDuplex())
			echo(x, w, r)
		}},
		{name: "full duplex: the body after a flush", on: not10, session: early,
			request: request{method: "POST", body: strings.Repeat("x", 1000), chunked: true},
			handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
				x.note("enabled, %v", http.NewResponseController(w).EnableFullDuplex())
				io.WriteString(w, "first, ")
				w.(http.Flusher).Flush()
				x.await("first")
				echo(x, w, r)
			}},
		{name: "full duplex: the body after a write", on: not10, request: request{method: "POST", body: "body", chunked: true},
			handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "first, ")
				echo(x, w, r)
			}},
		{name: "half duplex: the body after a flush", on: http1, session: early, request: post("body"), handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			echo(x, w, r)
		}},
		{name: "context: ends after the handler", handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.note("error of the context: %v", r.Context().Err())
			x.handlers.Go(func() {
				<-x.ended
				x.note("afterwards: %v, %v", r.Context().Err(), context.Cause(r.Context()))
			})
		}},
		{name: "context: what net/http puts there", handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			_, server := r.Context().Value(http.ServerContextKey).(*http.Server)
			x.note("server %t, address %t", server, r.Context().Value(http.LocalAddrContextKey) != nil)
			deadline, ok := r.Context().Deadline()
			x.note("deadline %v, %t", deadline, ok)
		}},
	}
}

// echo reads the body, notes it, and answers with its length.
func echo(x *exchange, w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	x.note("read %s, %v", shortened(string(b)), err)
	x.wrote(w.Write([]byte(strings.Repeat("e", len(b)))))
}
