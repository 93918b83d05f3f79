package differential

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing/iotest"
	"time"
)

var errSource = errors.New("the source failed")

// source hides all methods but Read.
func source(s string) io.Reader { return struct{ io.Reader }{strings.NewReader(s)} }

// failing returns a source that fails behind s.
func failing(s string) io.Reader { return io.MultiReader(source(s), iotest.ErrReader(errSource)) }

func readFromCases() []testCase {
	copying := func(src func() io.Reader) handler {
		return func(x *exchange, w http.ResponseWriter, _ *http.Request) { x.wrote(io.Copy(w, src())) }
	}
	long := strings.Repeat("0123456789", 10_000)
	return []testCase{
		{name: "copy: from a string", handler: copying(func() io.Reader { return strings.NewReader("body") })},
		{name: "copy: from a reader", handler: copying(func() io.Reader { return source("body") })},
		{name: "copy: 1000 bytes", handler: copying(func() io.Reader { return source(long[:1000]) })},
		{name: "copy: 100 KB", session: early, handler: copying(func() io.Reader { return source(long) })},
		{name: "copy: 1000 bytes, then an error", handler: copying(func() io.Reader { return failing(long[:1000]) })},
		{name: "copy: 100 KB, then an error", session: early, handler: copying(func() io.Reader { return failing(long) })},
		{name: "copy: an error at once, then 502", handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			n, err := io.Copy(w, failing(""))
			x.wrote(n, err)
			w.Header().Set("X-Why", err.Error())
			http.Error(w, "upstream failed", http.StatusBadGateway)
		}},
		{name: "copy: nothing, then 404", handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			x.wrote(io.Copy(w, source("")))
			w.Header().Set("X-Why", "empty")
			w.WriteHeader(404)
			io.WriteString(w, "nothing there")
		}},
		{name: "copy: nothing of a long declared length, then 404", handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			x.wrote(io.Copy(w, failing("")))
			w.Header().Del("Content-Length")
			w.WriteHeader(404)
		}},
		{name: "copy: between writes", session: early, handler: func(x *exchange, w http.ResponseWriter, _ *http.Request) {
			x.write(w, "before,")
			x.wrote(io.Copy(w, source(long)))
			x.write(w, ",after")
		}},
		{name: "copy: exactly the declared length", handler: declaredCopy("1000", source, long[:1000])},
		{name: "copy: more than the declared length", handler: declaredCopy("1000", source, long[:1500])},
		{name: "copy: less than the declared length", handler: declaredCopy("1000", source, long[:500])},
		{name: "copy: long, exactly the declared length", session: early, handler: declaredCopy("100000", source, long)},
		{name: "copy: long, less than the declared length", session: early, handler: declaredCopy("100000", source, long[:90_000])},
		{name: "copy: a file", session: early, handler: fromFile(0, 0)},
		{name: "copy: a file of declared length", session: early, handler: fromFile(300_000, 0)},
		{name: "copy: a range of a file", request: request{header: []string{"Range: bytes=5-14"}}, handler: plain(func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader(long))
		})},
		{name: "copy: a part of a file", session: early, handler: fromFile(200_000, 200_000)},
	}
}

func declaredCopy(length string, from func(string) io.Reader, body string) handler {
	return func(x *exchange, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", length)
		x.wrote(io.Copy(w, from(body)))
	}
}

// fromFile copies a file of 300,000 bytes, or as much as limit, to an answer of declared length.
func fromFile(declared, limit int64) handler {
	return func(x *exchange, w http.ResponseWriter, _ *http.Request) {
		f, err := os.CreateTemp("", "latchkey")
		if err != nil {
			x.note("%v", err)
			return
		}
		defer os.Remove(f.Name())
		defer f.Close()
		if _, err := f.Write([]byte(strings.Repeat("0123456789", 30_000))); err != nil {
			x.note("%v", err)
		}
		_, _ = f.Seek(0, io.SeekStart)
		if declared > 0 {
			w.Header().Set("Content-Length", strconv.FormatInt(declared, 10))
		}
		if limit > 0 {
			x.wrote(io.CopyN(w, f, limit))
		} else {
			x.wrote(io.Copy(w, f))
		}
		at, _ := f.Seek(0, io.SeekCurrent)
		x.note("the file is at %d", at)
	}
}
