package differential

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// The writers in these cases do what well-known compressors do, which differ in where they
// change the header.
func compressCases() (cases []testCase) {
	const page = "<!doctype html><p>some text, some text, some text, some text</p>"
	for _, kind := range []struct {
		name string
		wrap func(http.Handler) http.Handler
	}{
		{"gzip in Write", compressor(inWrite)},
		{"gzip in WriteHeader", compressor(inWriteHeader)},
	} {
		for _, h := range []struct {
			name    string
			request request
			session moment
			handler handler
		}{
			{"a page", get, atEnd, answering(page)},
			{"a page of declared length", get, atEnd, answering(page, "Content-Length: 64")},
			{"a page with a type", get, atEnd, answering(page, "Content-Type: text/x-own")},
			{"404", get, atEnd, plain(http.NotFound)},
			{"a long page", get, early, answering(strings.Repeat(page, 2000))},
			{"a flush", get, early, plain(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, page)
				w.(http.Flusher).Flush()
				io.WriteString(w, page)
			})},
			{"a copy", get, atEnd, func(x *exchange, w http.ResponseWriter, _ *http.Request) { x.wrote(io.Copy(w, source(page))) }},
			{"own Vary", get, atEnd, answering(page, "Vary: Accept")},
			{"204", get, atEnd, plain(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })},
		} {
			inside := h.session
			if h.name == "a long page" {
				inside = atEnd // a short one, once it is compressed
			}
			cases = append(cases,
				testCase{name: kind.name + " outside: " + h.name, request: h.request, session: h.session, handler: h.handler,
					outside: func(_ *exchange, next http.Handler) http.Handler { return kind.wrap(next) }},
				testCase{name: kind.name + " inside: " + h.name, request: h.request, session: inside,
					handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
						kind.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.handler(x, w, r) })).ServeHTTP(w, r)
					}},
			)
		}
	}
	return cases
}

// A place is where a compressor changes the header.
type place int

const (
	inWrite       place = iota // as in many blogs: where no status was written, and the type is sniffed
	inWriteHeader              // there alone, which Write calls by itself
)

func compressor(at place) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			z := &compressing{ResponseWriter: w, at: at}
			defer z.close()
			next.ServeHTTP(z, r)
		})
	}
}

type compressing struct {
	http.ResponseWriter
	at      place
	status  int
	encoder *gzip.Writer
}

func (z *compressing) WriteHeader(status int) {
	z.status = status
	if h := z.Header(); z.at == inWriteHeader {
		h.Del("Content-Length")
		if status != http.StatusNoContent {
			h.Set("Content-Encoding", "gzip")
			h.Add("Vary", "Accept-Encoding")
		}
	}
	z.ResponseWriter.WriteHeader(status)
}

func (z *compressing) Write(p []byte) (int, error) {
	h := z.Header()
	if z.encoder == nil {
		if z.at != inWriteHeader || z.status == 0 {
			if h.Get("Content-Type") == "" {
				h.Set("Content-Type", http.DetectContentType(p))
			}
		}
		h.Del("Content-Length")
		switch {
		case z.at == inWrite:
			h.Set("Content-Encoding", "gzip")
			h.Add("Vary", "Accept-Encoding")
		case z.at == inWriteHeader && z.status == 0:
			z.WriteHeader(http.StatusOK)
		}
		z.encoder = gzip.NewWriter(z.ResponseWriter)
	}
	return z.encoder.Write(p)
}

func (z *compressing) Flush() {
	if z.encoder != nil {
		_ = z.encoder.Flush()
	}
	_ = http.NewResponseController(z.ResponseWriter).Flush()
}

func (z *compressing) close() {
	if z.encoder != nil {
		_ = z.encoder.Close()
	}
}
