package differential

import (
	"io"
	"net/http"
	"time"
)

// A client that expects 100 Continue asks for permission before it sends its body.
func expectCases() []testCase {
	r := post("body")
	r.header = []string{"Expect: 100-continue"}
	return []testCase{
		{name: "expect: the body is read", on: not10, request: r, handler: echo},
		{name: "expect: the body is not read", on: not10, request: r, handler: answering("answer")},
		{name: "expect: refused with 413", on: not10, request: r, handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		})},
		{name: "expect: permitted by hand", on: not10, request: r, handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusContinue)
			echo(x, w, r)
		}},
		{name: "expect: the body after a write", on: http1[1:], request: r, server: func(s *http.Server) { s.ReadTimeout = time.Second },
			handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "first, ")
				b, err := io.ReadAll(r.Body)
				x.note("read %q, failed %t", b, err != nil)
			}},
	}
}
