package differential

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

func bodyCases() []testCase {
	return slices.Concat(bodiesRead(), bodiesNotRead(), forms())
}

func bodiesRead() []testCase {
	chunked := request{method: "POST", body: strings.Repeat("chunk ", 100), chunked: true}
	withTrailer, dripping := chunked, post(strings.Repeat("drop ", 100))
	withTrailer.trailer = "X-Check: 17"
	dripping.drip = true
	drippingChunks := chunked
	drippingChunks.drip = true
	return []testCase{
		{name: "body: none", handler: echo},
		{name: "body: empty", request: post(""), handler: echo},
		{name: "body: short", request: post("body"), handler: echo},
		{name: "body: 64 KB", request: post(strings.Repeat("x", 64<<10)), handler: echo},
		{name: "body: 300 KB", session: early, request: post(strings.Repeat("x", 300_000)), handler: echo},
		{name: "body: chunked", on: not10, request: chunked, handler: echo},
		{name: "body: with a trailer", on: http1[1:], request: withTrailer, handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.note("trailer %v", r.Trailer)
			echo(x, w, r)
			x.note("trailer %v", r.Trailer)
		}},
		{name: "body: comes slowly", request: dripping, handler: echo},
		{name: "body: read to its end and beyond", request: post("body"), handler: steps(echo, readFive)},
		{name: "body: read after Close", request: post("body"), handler: steps(closeBody, readFive, closeBody)},
		{name: "body: closed after a part", request: post("a longer body"), handler: steps(readFive, closeBody, readFive)},
		// Over HTTP/2 it depends on what is quicker: the server resets the stream, or the body is read.
		{name: "body: was read from outside", request: post("a longer body"), handler: echo, outside: func(_ *exchange, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadFull(r.Body, make([]byte, 5))
				next.ServeHTTP(w, r)
			})
		}},
		{name: "body: ends too early", on: http1, request: request{method: "POST", body: "body", missing: 10}, handler: echo},
	}
}

func bodiesNotRead() []testCase {
	ignoring := answering("answer")
	long := strings.Repeat("x", 300_000)
	slow := post(strings.Repeat("drop ", 100))
	slow.drip = true
	return []testCase{
		{name: "unread: short", request: post("body"), handler: ignoring},
		{name: "unread: 60 KB", request: post(strings.Repeat("x", 60_000)), handler: ignoring},
		{name: "unread: 300 KB", request: post(long), handler: ignoring},
		{name: "unread: and no answer", request: post("body"), handler: plain(func(http.ResponseWriter, *http.Request) {})},
		{name: "unread: and a flush", session: early, request: post("body"), handler: flush},
	}
}

func forms() []testCase {
	form := post("a=1&b=2")
	form.target, form.header = "/?a=0", []string{"Content-Type: application/x-www-form-urlencoded"}
	upload := post("--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\n" +
		strings.Repeat("x", 5000) + "\r\n--B--\r\n")
	upload.header = []string{"Content-Type: multipart/form-data; boundary=B"}
	large := post(strings.Repeat("x", 5000))
	limited := func(limit int64) handler {
		return func(x *exchange, w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
			echo(x, w, r)
		}
	}
	return []testCase{
		{name: "form: parsed", request: form, handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.note("value %q", r.FormValue("a"))
			x.note("form %v, of the body %v", r.Form, r.PostForm)
		}},
		{name: "form: seen outside", request: form, outside: seenOutside(func(x *exchange, _ http.ResponseWriter, r *http.Request) {
			x.note("form %v", r.Form)
		}), handler: plain(func(w http.ResponseWriter, r *http.Request) { r.ParseForm() })},
		{name: "form: upload", request: upload, outside: seenOutside(func(x *exchange, _ http.ResponseWriter, r *http.Request) {
			x.note("net/http can remove the files: %t", r.MultipartForm != nil)
		}), handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.note("parsed, %v", r.ParseMultipartForm(100))
			f, h, err := r.FormFile("f")
			if err != nil {
				x.note("%v", err)
				return
			}
			defer f.Close()
			n, err := io.Copy(io.Discard, f)
			x.note("%s has %d bytes, read %d, %v", h.Filename, h.Size, n, err)
			fmt.Fprint(w, n)
		}},
		{name: "limit: inside", request: large, handler: limited(1000)},
		{name: "limit: outside", request: large, handler: echo, outside: func(_ *exchange, next http.Handler) http.Handler {
			return http.MaxBytesHandler(next, 1000)
		}},
	}
}

// A client that expects 100 Continue asks for permission before it sends its body.
func expectCases() []testCase {
	r := post("body")
	r.header = []string{"Expect: 100-continue"}
	return []testCase{
		{name: "expect: the body is read", on: not10, request: r, handler: echo},
		{name: "expect: the body is not read", on: not10, request: r, handler: answering("answer")},
		{name: "expect: refused with 413", on: not10, request: r, handler: steps(status(http.StatusRequestEntityTooLarge), text("too large"))},
		{name: "expect: permitted by hand", on: not10, request: r, handler: steps(status(http.StatusContinue), echo)},
		{name: "expect: the body after a write", on: http1[1:], request: r, server: func(s *http.Server) { s.ReadTimeout = time.Second },
			handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, "first, ")
				b, err := io.ReadAll(r.Body)
				x.note("read %q, failed %t", b, err != nil)
			}},
	}
}

func deadlineCases() []testCase {
	past := time.Now().Add(-time.Second)
	return []testCase{
		{name: "deadline: for writing, over", session: never, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			x.note("set, %v", http.NewResponseController(w).SetWriteDeadline(past))
			x.write(w, "lost")
		}},
		{name: "full duplex: is enabled", request: post("body"), handler: steps(fullDuplex, echo)},
		{name: "full duplex: the body after a flush", on: not10, session: early,
			request: request{method: "POST", body: strings.Repeat("x", 1000), chunked: true},
			handler: steps(fullDuplex, text("first, "), flush, await("first"), echo)},
		{name: "half duplex: the body after a flush", on: http1, session: early, request: post("body"), handler: steps(flush, echo)},
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
