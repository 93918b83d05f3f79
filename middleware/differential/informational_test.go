package differential

import (
	"io"
	"net/http"
)

func informationalCases() []testCase {
	hint := func(w http.ResponseWriter) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
	}
	return []testCase{
		{name: "informational: 103", on: not10, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			hint(w)
			io.WriteString(w, "body")
		})},
		{name: "informational: 103, then 404", on: not10, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			hint(w)
			w.Header().Del("Link")
			w.WriteHeader(404)
			io.WriteString(w, "body")
		})},
		{name: "informational: 103 arrives at once", on: http1[1:], handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			hint(w)
			x.await("style.css")
			io.WriteString(w, "body")
		}},
		{name: "informational: 103 after a status", on: not10, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			hint(w)
			io.WriteString(w, "body")
		})},
		{name: "informational: 103 after a flush", on: not10, session: early, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			hint(w)
			io.WriteString(w, "body")
		})},
		{name: "informational: 103, then a panic", on: not10, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			hint(w)
			panic("boom")
		})},
		{name: "informational: 100 for a body", on: not10, request: post("body"), handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusContinue)
			b, err := io.ReadAll(r.Body)
			x.note("read %q, %v", b, err)
		}},
	}
}
