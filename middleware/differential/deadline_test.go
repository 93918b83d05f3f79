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
		{name: "deadline: for writing, over", session: never, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			x.note("set, %v", http.NewResponseController(w).SetWriteDeadline(past))
			x.write(w, "lost")
		}},
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
	}
}

// echo reads the body, notes it, and answers with its length.
func echo(x *exchange, w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	x.note("read %s, %v", shortened(string(b)), err)
	x.wrote(w.Write([]byte(strings.Repeat("e", len(b)))))
}
