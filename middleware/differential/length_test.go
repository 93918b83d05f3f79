package differential

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

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
		{name: "length: zero", handler: declared("0")},
		{name: "length: after the status", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(200)
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, "long body")
		})},
		{name: "length: long, exact", session: early, handler: declared("100000", long)},
		{name: "length: long, exact, HEAD", session: early, request: head, handler: declared("100000", long)},
		{name: "length: long, in two", session: early, handler: declared("100000", long[:70_000], long[70_000:])},
		{name: "length: long, too short", session: early, handler: declared("100000", long[:90_000])},
		{name: "length: writes of nothing", handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			x.write(w, "")
			x.write(w, "a")
			x.write(w, "")
			x.write(w, "b")
		}},
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
