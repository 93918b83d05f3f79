package differential

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

func headerCases() []testCase {
	return slices.Concat(contentTypes(), headersOfHandlers(), headersAround())
}

// answering returns a handler that sets a header and writes a body.
func answering(body string, lines ...string) handler {
	return plain(func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range lines {
			name, value, _ := strings.Cut(line, ": ")
			w.Header()[name] = append(w.Header()[name], value)
		}
		io.WriteString(w, body)
	})
}

func contentTypes() []testCase {
	const page = "<!doctype html><title>x</title>"
	return []testCase{
		{name: "type: sniffed from HTML", handler: answering(page)},
		{name: "type: sniffed from the first write", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<!doc")
			io.WriteString(w, "type html>")
		})},
		{name: "type: sniffed from a long answer", session: early, handler: answering(page + strings.Repeat("x", 100_000))},
		{name: "type: not sniffed in an encoding", handler: answering(page, "Content-Encoding: gzip")},
		{name: "type: nosniff", handler: answering(page, "X-Content-Type-Options: nosniff")},
		{name: "type: set", handler: answering(page, "Content-Type: text/x-own")},
		{name: "type: none", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, page)
		})},
	}
}

func headersOfHandlers() []testCase {
	return []testCase{
		{name: "header: no Date", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = nil
			io.WriteString(w, "x")
		})},
		{name: "header: Connection close", handler: answering("x", "Connection: close")},
		{name: "header: Connection keep-alive", handler: answering("x", "Connection: keep-alive")},
		{name: "header: Transfer-Encoding chunked", handler: answering("x", "Transfer-Encoding: chunked")},
		{name: "header: not canonical", handler: answering("x", "x-lower: a", "X-Lower: b")},
		{name: "header: many values", handler: answering("x", "X-A: 1", "X-A: 2", "X-A: 1", "Set-Cookie: a=b", "Set-Cookie: c=d")},
		{name: "header: own Vary", handler: answering("x", "Vary: Accept-Encoding")},
		{name: "header: Vary in two lines", handler: answering("x", "Vary: Accept", "Vary: Accept-Encoding")},
		{name: "header: Vary names Cookie", handler: answering("x", "Vary: Accept, cookie")},
		{name: "header: Vary *", handler: answering("x", "Vary: *")},
		{name: "header: cacheable", handler: answering("x", "Cache-Control: public, max-age=60", "Expires: Thu, 01 Jan 2099 00:00:00 GMT", "X-Accel-Expires: 60", "Cdn-Cache-Control: max-age=60")},
		{name: "header: not cacheable", handler: answering("x", "Cache-Control: no-cache")},
		{name: "header: after the status", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Before", "1")
			w.WriteHeader(200)
			w.Header().Set("X-After", "2")
			w.Header().Set("X-Before", "2")
		})},
		{name: "header: after the body", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Before", "1")
			io.WriteString(w, "body")
			w.Header().Set("X-After", "2")
			w.Header().Del("X-Before")
		})},
		{name: "header: values change after the status", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			values := []string{"before"}
			w.Header()["X-Values"] = values
			w.WriteHeader(200)
			values[0] = "after"
		})},
	}
}

func headersAround() []testCase {
	around := func(_ *exchange, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Around", "1")
			w.Header().Set("Content-Type", "text/x-around")
			next.ServeHTTP(w, r)
			w.Header().Set("X-Afterwards", "1")
		})
	}
	return []testCase{
		{name: "around: header", outside: around, handler: answering("x", "X-Inside: 1")},
		{name: "around: header of an empty answer", outside: around, handler: answering("")},
		{name: "around: header of a status", outside: around, handler: plain(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) })},
		{name: "around: sees the header", handler: answering("x", "X-Inside: 1"), outside: func(x *exchange, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				x.note("X-Inside is %q", w.Header().Get("X-Inside"))
			})
		}},
	}
}
