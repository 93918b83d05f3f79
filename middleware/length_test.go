package middleware_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// A Write that is longer than what is left of the declared length is refused, and so are all that
// follow, as in net/http: a shorter one must not take its place.
func TestAWriteThatIsTooLongIsRefusedForGood(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for name, o := range map[string]middleware.Options{"buffered": {}, "begun": {Buffer: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10")
				for _, part := range []string{"12345", "too long", "ABCDE"} {
					n, err := io.WriteString(w, part)
					if part == "12345" && (n != 5 || err != nil) || part != "12345" && (n != 0 || err != http.ErrContentLength) {
						t.Errorf("%q: %d, %v", part, n, err)
					}
				}
			}
			plain := quiet(http.HandlerFunc(h))
			defer plain.Close()
			sessioned := newSite(t, r.Pool(t, 4), o, touched(h))
			for _, url := range []string{plain.URL, sessioned.URL} {
				if a := newVisitor(t).post(url); a.err != io.ErrUnexpectedEOF || a.body != "12345" {
					t.Errorf("the client got %q, error %v", a.body, a.err)
				}
			}
		})
	}
}

// An answer that is complete before the connection is handed over arrives whole. Its last byte
// was held back until then.
func TestNoByteIsLostBeforeAHijack(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	for name, o := range map[string]middleware.Options{"buffered": {}, "begun": {Buffer: 100}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := strings.Repeat("x", 5000)
			s := newSite(t, r.Pool(t, 4), o, touched(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "5000")
				fmt.Fprint(w, body)
				conn, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, "and more")
			}))
			c := dial(t, s.Server)
			c.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			c.read().want(t, 200, body)
			if rest, err := io.ReadAll(c); string(rest) != "and more" || err != nil {
				t.Errorf("after the answer came %q, %v", rest, err)
			}
			if lines := s.log.Lines("hijacked"); len(lines) > 0 {
				t.Errorf("log: %q", lines)
			}
		})
	}
}
