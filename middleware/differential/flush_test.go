package differential

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

func flushCases() []testCase {
	flush := func(w http.ResponseWriter) { w.(http.Flusher).Flush() }
	ticks := func(x *exchange, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			event := fmt.Sprintf("data: %d\n\n", i)
			x.write(w, event)
			flush(w)
			x.await(event)
		}
	}
	return []testCase{
		{name: "flush: alone", session: early, handler: plain(func(w http.ResponseWriter, _ *http.Request) { flush(w) })},
		{name: "flush: after the body", session: early, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<h1>body</h1>")
			flush(w)
		})},
		{name: "flush: after a status", session: early, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			flush(w)
			io.WriteString(w, "body")
		})},
		{name: "flush: in a declared length", session: early, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			x.write(w, "12345")
			flush(w)
			x.await("12345")
			x.write(w, "67890")
		}},
		{name: "flush: short of the declared length", session: early, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			x.write(w, "12345")
			flush(w)
		}},
		{name: "flush: by the controller", session: early, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "body")
			x.note("flushed, %v", http.NewResponseController(w).Flush())
			x.await("body")
		}},
		{name: "flush: before a copy", session: early, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			flush(w)
			x.wrote(io.Copy(w, source(strings.Repeat("x", 200_000))))
		}},
		{name: "flush: events", session: early, handler: ticks},
	}
}
