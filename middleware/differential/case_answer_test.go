package differential

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

func statusCases() []testCase {
	cases := []testCase{
		{name: "status: nothing is written", handler: plain(func(http.ResponseWriter, *http.Request) {})},
		{name: "status: written twice", handler: steps(status(404), status(500))},
		{name: "status: after an empty write", handler: steps(text(""), status(404))},
		{name: "status: after a flush", session: early, handler: steps(flush, status(404), text("body"))},
		{name: "status: http.Redirect", handler: plain(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere?a=b", http.StatusSeeOther)
		})},
		{name: "status: http.NotFound", handler: plain(http.NotFound)},
		{name: "status: 101 without a hijack", on: http1, request: request{after: "\r\n"}, handler: steps(set("Connection: close"), status(101))},
	}
	for _, code := range []int{200, 201, 204, 205, 206, 299, 304, 404, 500, 599, 600, 999} {
		cases = append(cases, testCase{name: fmt.Sprintf("status: %d with a body", code),
			handler: steps(set("X-Handler: yes"), status(code), text("body"))})
	}
	for _, code := range []int{204, 304, 404} {
		cases = append(cases, testCase{name: fmt.Sprintf("status: %d without a body", code), handler: status(code)})
	}
	for _, code := range []int{0, 1000} {
		cases = append(cases, invalidStatus(code)...)
	}
	return cases
}

// invalidStatus returns cases with a status that net/http refuses by a panic, but only if the status would be used.
func invalidStatus(code int) []testCase {
	name := func(when string) string { return fmt.Sprintf("status: invalid %d, %s", code, when) }
	return []testCase{
		{name: name("at first"), handler: status(code)},
		{name: name("after a status"), handler: steps(status(200), status(code))},
		{name: name("after the body"), handler: steps(text("body"), status(code))},
		{name: name("after a flush"), session: early, handler: steps(flush, status(code))},
	}
}

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
		{name: "type: sniffed from the first write", handler: steps(text("<!doc"), text("type html>"))},
		{name: "type: sniffed from a long answer", session: early, handler: answering(page + strings.Repeat("x", 100_000))},
		{name: "type: not sniffed in an encoding", handler: answering(page, "Content-Encoding: gzip")},
		{name: "type: nosniff", handler: answering(page, "X-Content-Type-Options: nosniff")},
		{name: "type: set", handler: answering(page, "Content-Type: text/x-own")},
		{name: "type: none", handler: steps(none("Content-Type"), text(page))},
	}
}

func headersOfHandlers() []testCase {
	return []testCase{
		{name: "header: no Date", handler: steps(none("Date"), text("x"))},
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
		{name: "header: after the status", handler: steps(set("X-Before: 1"), status(200), set("X-After: 2"), set("X-Before: 2"))},
		{name: "header: after the body", handler: steps(set("X-Before: 1"), text("body"), set("X-After: 2"), unset("X-Before"))},
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
		{name: "around: header of a status", outside: around, handler: status(404)},
		{name: "around: sees the header", handler: answering("x", "X-Inside: 1"), outside: seenOutside(func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			x.note("X-Inside is %q", w.Header().Get("X-Inside"))
		})},
	}
}

func lengthCases() []testCase {
	declared := func(length string, writes ...string) handler {
		return func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", length)
			for _, s := range writes {
				x.write(w, s)
			}
		}
	}
	long := strings.Repeat("x", 100_000)
	cases := []testCase{
		{name: "length: exact", handler: declared("10", "12345", "67890")},
		{name: "length: exact, HEAD", request: head, handler: declared("10", "12345", "67890")},
		{name: "length: HEAD without a body", request: head, handler: declared("10")},
		{name: "length: too short", handler: declared("10", "12345")},
		{name: "length: no body", handler: declared("10")},
		{name: "length: exceeded", handler: declared("5", "12345", "6")},
		{name: "length: exceeded by a part that is too long", on: http1, handler: declared("10", "12345", "too long", "ABCDE")},
		{name: "length: exceeded by a part that is too long, after a flush", on: http1, session: early,
			handler: steps(set("Content-Length: 10"), text("12345"), flush, text("too long"), text("ABCDE"))},
		{name: "length: zero", handler: declared("0")},
		{name: "length: after the status", handler: steps(status(200), set("Content-Length: 5"), text("long body"))},
		{name: "length: long, exact", session: early, handler: declared("100000", long)},
		{name: "length: long, exact, HEAD", session: early, request: head, handler: declared("100000", long)},
		{name: "length: long, in two", session: early, handler: declared("100000", long[:70_000], long[70_000:])},
		{name: "length: long, too short", session: early, handler: declared("100000", long[:90_000])},
		{name: "length: writes of nothing", handler: steps(text(""), text("a"), text(""), text("b"))},
		{name: "length: many small writes", session: early, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 20_000 {
				fmt.Fprintf(w, "%d\n", i)
			}
		})},
	}
	for _, n := range []int{1, 2047, 2048, 2049, 4097, 64<<10 - 1, 64 << 10, 64<<10 + 1, 300_000} {
		when := atEnd
		if n > 64<<10 {
			when = early
		}
		answer := func(x *exchange, w http.ResponseWriter, _ *http.Request) { x.write(w, strings.Repeat("x", n)) }
		cases = append(cases, testCase{name: fmt.Sprintf("length: %d bytes, not declared", n), session: when, handler: answer})
		if n == 1 || n == 2049 || n == 1<<20 {
			cases = append(cases, testCase{name: fmt.Sprintf("length: %d bytes, not declared, HEAD", n), session: when, request: head, handler: answer})
		}
	}
	return cases
}

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
		{name: "trailer: after a flush", session: early, handler: steps(set("Trailer: X-Sum"), text("body"), flush, set("X-Sum: 17"))},
		{name: "trailer: by prefix", handler: steps(text("body"), set(http.TrailerPrefix+"X-Sum: 17"))},
		{name: "trailer: with a declared length", handler: steps(set("Trailer: X-Sum"), set("Content-Length: 4"), text("body"), set("X-Sum: 17"))},
		{name: "trailer: Vary and Cache-Control", handler: steps(set("Trailer: Vary, X-Sum"), text("body"), set("X-Sum: 17"))},
	}
}

func informationalCases() []testCase {
	hint := steps(set("Link: </style.css>; rel=preload"), status(http.StatusEarlyHints))
	return []testCase{
		{name: "informational: 103", on: not10, handler: steps(hint, text("body"))},
		{name: "informational: 103, then 404", on: not10, handler: steps(hint, unset("Link"), status(404), text("body"))},
		{name: "informational: 103 arrives at once", on: http1[1:], handler: steps(hint, await("style.css"), text("body"))},
		{name: "informational: 103 after a status", on: not10, handler: steps(status(200), hint, text("body"))},
		{name: "informational: 103 after a flush", on: not10, session: early, handler: steps(flush, hint, text("body"))},
		{name: "informational: 103, then a panic", on: not10, handler: steps(hint, boom)},
		{name: "informational: 100 for a body", on: not10, request: post("body"), handler: steps(status(http.StatusContinue), echo)},
	}
}
