package differential

import (
	"io"
	"net/http"
	"strings"
)

func trailerCases() []testCase {
	declared := func(body string) handler {
		return plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum, X-Never")
			w.Header().Add("Trailer", "X-More")
			io.WriteString(w, body)
			w.Header().Set("X-Sum", "17")
			w.Header().Set("X-More", "18")
			w.Header().Set("X-Undeclared", "19")
		})
	}
	return []testCase{
		{name: "trailer: declared", handler: declared("body")},
		{name: "trailer: declared, long answer", session: early, handler: declared(strings.Repeat("x", 100_000))},
		{name: "trailer: after a flush", session: early, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, "body")
			w.(http.Flusher).Flush()
			w.Header().Set("X-Sum", "17")
		})},
		{name: "trailer: by prefix", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "body")
			w.Header().Set(http.TrailerPrefix+"X-Sum", "17")
		})},
		{name: "trailer: with a declared length", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("Content-Length", "4")
			io.WriteString(w, "body")
			w.Header().Set("X-Sum", "17")
		})},
		{name: "trailer: Vary and Cache-Control", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Vary, X-Sum")
			io.WriteString(w, "body")
			w.Header().Set("X-Sum", "17")
		})},
	}
}
