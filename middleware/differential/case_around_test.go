package differential

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

func panicCases() []testCase {
	return slices.Concat(endings(), recoveries())
}

// endings are the ways to end a handler other than by returning, at different times.
func endings() (cases []testCase) {
	for _, end := range []struct {
		name string
		do   func()
	}{
		{"panic", func() { panic("boom") }},
		{"panic with an error", func() { panic(errors.New("boom")) }},
		{"ErrAbortHandler", func() { panic(http.ErrAbortHandler) }},
		{"Goexit", runtime.Goexit},
	} {
		ending := func(before ...handler) handler {
			return steps(append(before, plain(func(http.ResponseWriter, *http.Request) { end.do() }))...)
		}
		cases = append(cases,
			testCase{name: end.name + ": at once", handler: ending()},
			testCase{name: end.name + ": after a status", handler: ending(status(404))},
			testCase{name: end.name + ": after a short body", handler: ending(text("body"))},
			testCase{name: end.name + ": after a flush", session: early, handler: ending(text("body"), flush)},
		)
	}
	return append(cases,
		testCase{name: "panic: after 5000 bytes", session: never, handler: steps(text(strings.Repeat("x", 5000)), boom)},
	)
}

// recoveries are panics that some handler answers.
func recoveries() []testCase {
	early := steps(set("X-Half: done"), boom)
	late := steps(set("X-Half: done"), status(201), text("half"), boom)
	return []testCase{
		{name: "recovered inside", handler: plain(func(w http.ResponseWriter, _ *http.Request) {
			defer func() {
				recover()
				http.Error(w, "sorry", 500)
			}()
			panic("boom")
		})},
		{name: "recovered outside: after a header", session: never, outside: recovering, handler: early},
		{name: "recovered outside: after a body", session: never, outside: recovering, handler: late},
		{name: "recovered outside: answered through the inner writer", session: never, outside: recoveringInside, handler: inner(early)},
		{name: "recovered outside: answered through the inner writer after a body", session: never, outside: recoveringInside, handler: inner(late)},
		{name: "recovered outside: flushed through the inner writer", session: never, outside: recoveringInside,
			handler: inner(func(x *exchange, w http.ResponseWriter, r *http.Request) {
				defer func() {
					x.afterwards = func() {
						w.(http.Flusher).Flush()
						io.WriteString(w, "flushed")
					}
				}()
				panic("boom")
			})},
	}
}

// recovering answers a panic of next.
func recovering(x *exchange, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				x.note("recovered %v", p)
				http.Error(w, "sorry", 500)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// recoveringInside answers a panic of next through the writer that next had, as some frameworks do.
func recoveringInside(x *exchange, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			recover()
			x.afterwards()
		}()
		next.ServeHTTP(w, r)
	})
}

// inner lets recoveringInside have the handler's writer.
func inner(h handler) handler {
	return func(x *exchange, w http.ResponseWriter, r *http.Request) {
		x.afterwards = func() { http.Error(w, "sorry", 500) }
		h(x, w, r)
	}
}

func timeoutCases() []testCase {
	outside := func(d time.Duration) func(*exchange, http.Handler) http.Handler {
		return func(_ *exchange, next http.Handler) http.Handler { return http.TimeoutHandler(next, d, "too slow") }
	}
	inside := func(d time.Duration, h handler) handler {
		return func(x *exchange, w http.ResponseWriter, r *http.Request) {
			http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h(x, w, r) }), d, "too slow").ServeHTTP(w, r)
		}
	}
	// slow returns only when its time is over.
	slow := func(x *exchange, w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Slow", "yes")
		io.WriteString(w, "half")
		x.handlers.Add(1)
		defer x.handlers.Done()
		<-r.Context().Done()
	}
	flushing := func(x *exchange, w http.ResponseWriter, _ *http.Request) {
		_, flusher := w.(http.Flusher)
		x.note("is a Flusher: %t", flusher)
		x.note("flushed, %v", http.NewResponseController(w).Flush())
		io.WriteString(w, "body")
	}
	const (
		short, ample = 30 * time.Millisecond, time.Minute
		enough       = time.Second // to open the session on a busy machine
	)
	return []testCase{
		{name: "timeout outside: not reached", outside: outside(ample), handler: answering("body", "X-A: 1")},
		{name: "timeout outside: long answer", session: early, outside: outside(ample), handler: text(strings.Repeat("x", 100_000))},
		{name: "timeout outside: a body", request: post("body"), outside: outside(ample), handler: echo},
		{name: "timeout outside: panic", outside: outside(ample), handler: boom},
		{name: "timeout outside: a flush", outside: outside(ample), handler: flushing},
		{name: "timeout outside: reached", session: never, outside: outside(enough), handler: slow},
		{name: "timeout inside: not reached", handler: inside(ample, answering("body", "X-A: 1"))},
		{name: "timeout inside: panic", handler: inside(ample, boom)},
		{name: "timeout inside: reached", handler: inside(short, slow)},
		{name: "timeout inside: writes afterwards", handler: inside(short, func(x *exchange, w http.ResponseWriter, r *http.Request) {
			x.handlers.Add(1)
			defer x.handlers.Done()
			<-x.ended
			x.write(w, "too late")
		})},
	}
}

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
	patternOutside := seenOutside(func(x *exchange, _ http.ResponseWriter, r *http.Request) {
		x.note("outside: pattern %q, item %q", r.Pattern, r.PathValue("item"))
	})
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
		{name: "request: changed for those outside", outside: seenOutside(func(x *exchange, _ http.ResponseWriter, r *http.Request) {
			x.note("outside: %s, X-Seen %q, close %t", r.URL.Path, r.Header.Get("X-Seen"), r.Close)
		}), handler: plain(func(_ http.ResponseWriter, r *http.Request) {
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

// backend is the server behind the proxies in these cases. The test starts it.
var backend atomic.Pointer[httptest.Server]

func newBackend() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "from behind") })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 200_000)) })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "17")
		w.Header().Set(http.TrailerPrefix+"X-More", "18")
	})
	mux.HandleFunc("/events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/abort", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("/upgrade", func(w http.ResponseWriter, r *http.Request) {
		conn, stream, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := stream.ReadString('\n')
		io.WriteString(conn, line)
	})
	return httptest.NewServer(mux)
}

func proxyCases() []testCase {
	// proxied passes the request on to a path of the backend.
	proxied := func(path string) handler {
		return func(x *exchange, w http.ResponseWriter, r *http.Request) {
			target, err := url.Parse(backend.Load().URL + path)
			if err != nil {
				x.note("%v", err)
				return
			}
			proxy := &httputil.ReverseProxy{
				Rewrite: func(p *httputil.ProxyRequest) {
					p.Out.URL = target
					p.Out.Header.Del("Cookie")
				},
				ErrorLog: log.New(x, "proxy: ", 0),
			}
			proxy.ServeHTTP(w, r)
		}
	}
	upgradeThrough := upgrade
	upgradeThrough.after, upgradeThrough.then = "", "ping\n" // a ReverseProxy drops what comes sooner
	return []testCase{
		{name: "proxy: short", handler: proxied("/short")},
		{name: "proxy: long", session: early, handler: proxied("/long")},
		{name: "proxy: a body", request: post("body"), handler: proxied("/echo")},
		{name: "proxy: a trailer", session: early, handler: proxied("/trailer")},
		{name: "proxy: events", session: early, handler: proxied("/events")},
		{name: "proxy: an answer that is cut off", session: early, handler: proxied("/abort")},
		{name: "proxy: an upgrade", on: http1[1:], session: early, request: upgradeThrough, handler: proxied("/upgrade")},
	}
}
