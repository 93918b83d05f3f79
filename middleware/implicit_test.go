package middleware_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/a2139e8d/latchkey/internal/redistest"
	"github.com/a2139e8d/latchkey/middleware"
	"github.com/a2139e8d/latchkey/store"
)

// A writer around the sessions sees the calls that the handler makes, and no others: those that
// work in Write rely on a status of 200 that nobody has chosen.
func TestOnlyTheHandlersCallsReachTheWriterAround(t *testing.T) {
	t.Parallel()
	r := redistest.Embedded(t)
	sessions, err := middleware.New(store.New(r.Pool(t, 4), store.Options{}), middleware.Options{Keys: [][]byte{testKey}})
	if err != nil {
		t.Fatal(err)
	}
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, sessioned := &calls{}, &calls{}
			req, err := http.NewRequest(http.MethodGet, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			h.ServeHTTP(plain, req)
			sessions.Handler(touched(h)).ServeHTTP(sessioned, req)
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

func (c *calls) Header() http.Header {
	if c.header == nil {
		c.header = http.Header{}
	}
	return c.header
}
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
	r := redistest.Embedded(t)
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
		for buffer, size := range map[string]int{"at once": 16, "at the end": 100_000} {
			t.Run(name+", "+buffer, func(t *testing.T) {
				t.Parallel()
				var seen []answer
				for _, sessioned := range []bool{false, true} {
					s := around(t, r, middleware.Options{}, func(sessions func(http.Handler) http.Handler) http.Handler {
						var inner http.Handler = h
						if sessioned {
							inner = sessions(touched(h))
						}
						return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
							out := bufio.NewWriterSize(w, size)
							defer out.Flush()
							zip := gzip.NewWriter(out)
							defer zip.Close()
							inner.ServeHTTP(tutorialGzip{w, zip}, req)
						})
					})
					a := newVisitor(t).get(s.URL) // which unzips it
					a.want(t, 200, page)
					seen = append(seen, a)
				}
				plain, sessioned := seen[0], seen[1]
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
