package differential

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

func routingCases() []testCase {
	mux := func(_ *exchange, next http.Handler) http.Handler {
		m := http.NewServeMux()
		m.Handle("GET /shop/{item}/{rest...}", next)
		return m
	}
	shown := func(x *exchange, w http.ResponseWriter, r *http.Request) {
		x.note("pattern %q, item %q, rest %q, path %q", r.Pattern, r.PathValue("item"), r.PathValue("rest"), r.URL.Path)
		fmt.Fprint(w, r.PathValue("item"))
	}
	innerMux := func(x *exchange, w http.ResponseWriter, r *http.Request) {
		m := http.NewServeMux()
		m.HandleFunc("GET /shop/{item}/{rest...}", func(w http.ResponseWriter, r *http.Request) { shown(x, w, r) })
		m.ServeHTTP(w, r)
	}
	patternOutside := func(x *exchange, next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			x.note("outside: pattern %q, item %q", r.Pattern, r.PathValue("item"))
		})
	}
	strip := func(_ *exchange, next http.Handler) http.Handler { return http.StripPrefix("/shop", next) }
	shop := request{target: "/shop/7/a/b?q=1"}
	return []testCase{
		{name: "routing: a mux outside", request: shop, outside: mux, handler: shown},
		{name: "routing: a mux outside, 404", request: request{target: "/none"}, session: never, outside: mux, handler: shown},
		{name: "routing: a mux inside", request: shop, handler: innerMux},
		{name: "routing: a mux inside, seen outside", request: shop, outside: patternOutside, handler: innerMux},
		{name: "routing: StripPrefix outside", request: shop, outside: strip, handler: shown},
		{name: "request: as it is", request: request{method: "POST", target: "/a%2Fb?q=1&q=2", header: []string{"X-A: 1", "x-a: 2", "Referer: /r"}, body: "body"}, handler: describe},
		{name: "request: chunked", on: not10, request: request{method: "PUT", body: "body", chunked: true}, handler: describe},
		{name: "request: OPTIONS *", on: http1, session: never, request: request{method: "OPTIONS", target: "*"}, handler: describe},
		{name: "request: changed for those outside", outside: func(x *exchange, next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				next.ServeHTTP(w, r)
				x.note("outside: %s, X-Seen %q, close %t", r.URL.Path, r.Header.Get("X-Seen"), r.Close)
			})
		}, handler: plain(func(_ http.ResponseWriter, r *http.Request) {
			r.Header.Set("X-Seen", "yes")
			r.URL.Path = "/changed"
		})},
		{name: "writer: what it can do", handler: func(x *exchange, w http.ResponseWriter, r *http.Request) {
			for _, can := range []struct {
				name string
				is   func() bool
			}{
				{"Flusher", is[http.Flusher](w)},
				{"FlushError", is[interface{ FlushError() error }](w)},
				{"Hijacker", is[http.Hijacker](w)},
				{"CloseNotify", is[interface{ CloseNotify() <-chan bool }](w)},
				{"Pusher", is[http.Pusher](w)},
				{"ReaderFrom", is[io.ReaderFrom](w)},
				{"StringWriter", is[io.StringWriter](w)},
				{"EnableFullDuplex", is[interface{ EnableFullDuplex() error }](w)},
			} {
				x.note("the writer has %s: %t", can.name, can.is())
			}
		}},
	}
}

func is[T any](w any) func() bool {
	return func() bool {
		_, ok := w.(T)
		return ok
	}
}

// describe notes the request as the handler has it.
func describe(x *exchange, w http.ResponseWriter, r *http.Request) {
	x.note("%s %s %s %d.%d, host %s", r.Method, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor, r.Host)
	x.note("URL %+v", *r.URL)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := strings.Join(r.Header[name], " | ")
		if name == "Cookie" {
			value = fmt.Sprint(len(r.Cookies()))
		}
		x.note("%s: %s", name, value)
	}
	x.note("length %d, encoding %q, close %t, trailer %v", r.ContentLength, r.TransferEncoding, r.Close, r.Trailer)
	x.note("form %v, of the body %v, multipart %v", r.Form, r.PostForm, r.MultipartForm)
	x.note("from %s, TLS %t, pattern %q", r.RemoteAddr, r.TLS != nil, r.Pattern)
	x.note("body %t, none %t, to be had again %t, response %t", r.Body != nil, r.Body == http.NoBody, r.GetBody != nil, r.Response != nil)
	io.WriteString(w, "described")
}
