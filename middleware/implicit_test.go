package middleware_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
)

// A writer around the sessions sees the calls that the handler makes, and no others: those that
// work in Write rely on a status of 200 that nobody has chosen.
func TestOnlyTheHandlersCallsReachTheWriterAround(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"nothing":          func(http.ResponseWriter, *http.Request) {},
		"write":            func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "12345") },
		"large write":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 100_000)) },
		"status":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) },
		"status and write": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); fmt.Fprint(w, "12345") },
		"flush":            func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
		"write and flush":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "12345"); w.(http.Flusher).Flush() },
		"declared": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			fmt.Fprint(w, "12345")
		},
		"declared and flushed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1")
			fmt.Fprint(w, "1")
			w.(http.Flusher).Flush()
		},
		"trailer": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "12345")
			w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		},
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			plain, sessioned := &calls{header: http.Header{}}, &calls{header: http.Header{}}
			req := httptest.NewRequest(http.MethodGet, "/", nil)
			h.ServeHTTP(plain, req)
			newSessions(t, r, middleware.Options{}).Handler(touched(h)).ServeHTTP(sessioned, req)
			if !slices.Equal(plain.made, sessioned.made) {
				t.Errorf("%q; without sessions %q", sessioned.made, plain.made)
			}
		})
	}
}

// calls is a ResponseWriter that notes what is called.
type calls struct {
	header http.Header
	made   []string
}

func (c *calls) Header() http.Header    { return c.header }
func (c *calls) WriteHeader(status int) { c.made = append(c.made, fmt.Sprint("WriteHeader ", status)) }
func (c *calls) Write(p []byte) (int, error) {
	c.made = append(c.made, fmt.Sprint("Write ", len(p)))
	return len(p), nil
}
func (c *calls) Flush() { c.made = append(c.made, "Flush") }

// The compressor that a hundred tutorials have completes the header in its Write.
type tutorialGzip struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (w tutorialGzip) Write(p []byte) (int, error) {
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", http.DetectContentType(p))
	}
	h.Del("Content-Length")
	h.Set("Content-Encoding", "gzip")
	return w.zip.Write(p)
}

func TestACompressorAroundTheSessions(t *testing.T) {
	t.Parallel()
	page := "<!DOCTYPE html><p>" + strings.Repeat("hello", 100)
	declare := func(w http.ResponseWriter) { w.Header().Set("Content-Length", strconv.Itoa(len(page))) }
	for name, h := range map[string]http.HandlerFunc{
		"plain":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) },
		"declared": func(w http.ResponseWriter, _ *http.Request) { declare(w); fmt.Fprint(w, page) },
		"copied": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader(page), 1e6))
		},
		"header too late": func(w http.ResponseWriter, _ *http.Request) {
			declare(w)
			fmt.Fprint(w, page)
			w.Header().Set("X-Late", "yes")
		},
	} {
		for when, buffer := range map[string]int{"at once": 16, "at the end": 100_000} {
			inFakeTime(t, name+", "+when, func(t *testing.T, r *redistest.Server) {
				compressed := func(inner http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						out := bufio.NewWriterSize(w, buffer)
						defer out.Flush()
						zip := gzip.NewWriter(out)
						defer zip.Close()
						inner.ServeHTTP(tutorialGzip{w, zip}, req)
					})
				}
				plain, sessioned := besides(t, r, h, compressed)
				plain.want(t, 200, page) // which the visitor has unzipped
				sessioned.want(t, 200, page)
				if !sessioned.Uncompressed || !sessioned.sets() {
					t.Errorf("%v", sessioned.Header)
				}
				for _, key := range []string{"Content-Type", "X-Late"} {
					if sessioned.Header.Get(key) != plain.Header.Get(key) {
						t.Errorf("%v\nwithout sessions: %v", sessioned.Header, plain.Header)
					}
				}
			})
		}
	}
}

// besides returns the answers of a handler that has no session, and of the same with one, each
// inside of another.
func besides(t *testing.T, r *redistest.Server, h http.HandlerFunc, around func(http.Handler) http.Handler) (plain, sessioned answer) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/plain", around(h))
	mux.Handle("/sessioned", around(newSessions(t, r, middleware.Options{}).Handler(touched(h))))
	none := middleware.Options{Mode: func(*http.Request) middleware.Mode { return middleware.None }}
	s := newSite(t, r.Pool(t, 1), none, mux)
	return newVisitor(t).post(s.URL + "/plain"), newVisitor(t).post(s.URL + "/sessioned")
}

// A Write that is longer than what is left of the declared length is refused, and so are all that
// follow, as in net/http: a shorter one must not take its place.
func TestAWriteThatIsTooLongIsRefusedForGood(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w http.ResponseWriter){
		"buffered": func(http.ResponseWriter) {}, "begun": func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
	} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			plain, sessioned := besides(t, r, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10")
				for _, part := range []string{"12345", "too long", "ABCDE"} {
					n, err := io.WriteString(w, part)
					if part == "12345" && (n != 5 || err != nil) || part != "12345" && (n != 0 || err != http.ErrContentLength) {
						t.Errorf("%q: %d, %v", part, n, err)
					}
					begin(w)
				}
			}, func(h http.Handler) http.Handler { return h })
			for _, a := range []answer{plain, sessioned} {
				if a.err != io.ErrUnexpectedEOF || a.body != "12345" {
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
	for name, o := range map[string]middleware.Options{"buffered": {}, "begun": {Buffer: 100}} {
		inFakeTime(t, name, func(t *testing.T, r *redistest.Server) {
			body := strings.Repeat("x", 5000)
			s := newSite(t, r.Pool(t, 4), o, touched(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "5000")
				fmt.Fprint(w, body)
				conn, _, err := w.(http.Hijacker).Hijack()
				must(t, err)
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

// A websocket library that finds a Hijacker sends its 101, and cannot take that back. So there
// is one only if the connection can be taken over.
func TestTheWriterIsAHijackerWhereTheConnectionCanBeTakenOver(t *testing.T) {
	t.Parallel()
	for can, around := range map[bool]func(http.Handler) http.Handler{
		true:  func(h http.Handler) http.Handler { return h },
		false: func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "") },
	} {
		inFakeTime(t, fmt.Sprint(can), func(t *testing.T, r *redistest.Server) {
			besides(t, r, func(w http.ResponseWriter, _ *http.Request) {
				if _, ok := w.(http.Hijacker); ok != can {
					t.Errorf("the writer is a Hijacker: %v, want %v", ok, can)
				}
			}, around)
		})
	}
}
